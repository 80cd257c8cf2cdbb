// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

var _ = Describe("A stranger", func() {
	It("that answers in a machine's place is noticed at the Server and at its BMC, and nothing is written to it", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		name := serverOf(m)
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionReady)).Should(HavePrefix("True/"))
		before := theWorld.fleet.LastWrite()
		former := m.SwapIdentity(emulator.Identity{UUID: "0badcafe-0000-4000-8000-000000000003", SerialNumber: "STRANGER"})
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionIdentityMismatch)).Should(Equal("True/OtherSystem"))
		Eventually(bmcCondition(ctx, m.Name(), v1alpha1.ConditionSystemsAccepted)).Should(Equal("False/SystemUnaccepted"))

		By("claiming the server that is no longer there")
		create(ctx, newClaim("for-a-stranger", m))
		Consistently(touched(m, before)).Should(BeEmpty())
		m.SwapIdentity(former)
		Eventually(claimCondition(ctx, "for-a-stranger", "Ready")).Should(Equal("True/Running"))
	})

	It("that shows a machine's system at another BMC is refused, while the machine is used", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		twin := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Identity = m.Identity() })
		Eventually(bmcCondition(ctx, twin.Name(), v1alpha1.ConditionSystemsAccepted)).Should(Equal("False/SystemConflict"))
		create(ctx, newClaim("beside-a-twin", m))
		Eventually(claimCondition(ctx, "beside-a-twin", "Ready")).Should(Equal("True/Running"))
		Expect(getServer(ctx, serverOf(m)).Spec.BMCRef.Name).To(Equal(m.Name()))
		Expect(twin.Writes()).To(BeEmpty())
	})

	It("that is the new BMC of a machine takes its Server over, which keeps its claim, and leaves it running", func(ctx SpecContext) {
		m := claimed(ctx, "replaced-bmc")
		name := serverOf(m)
		n := theWorld.machines.Add(1)
		replaced := theWorld.fleet.Add(emulator.MachineSpec{Name: fmt.Sprintf("m%03d", n), Username: "admin", Password: "password",
			Identity: m.Identity(), Power: emulator.PowerOn})
		Expect(replaced.Err()).NotTo(HaveOccurred())
		Expect(m.SetReachability(emulator.Refusing)).To(Succeed())
		b := &v1alpha1.BMC{}
		Expect(admin.Get(ctx, types.NamespacedName{Name: m.Name()}, b)).To(Succeed())
		Expect(admin.Delete(ctx, b)).To(Succeed())
		theWorld.announce(ctx, replaced, nil)
		Eventually(func() string { return getServer(ctx, name).Spec.BMCRef.Name }).Should(Equal(replaced.Name()))
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionBMCReachable)).Should(Equal("True/Connected"))
		Eventually(state(ctx, name)).Should(Equal("Reserved/On"))
		Eventually(claimCondition(ctx, "replaced-bmc", "Ready")).Should(Equal("True/Running"))
		Consistently(replaced.Writes).Should(BeEmpty())
	})
})
