// SPDX-License-Identifier: Apache-2.0

package story

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// bmcCondition returns "status/reason" of a condition of a BMC.
func bmcCondition(ctx SpecContext, name, kind string) func() string {
	return func() string {
		b := &v1alpha1.BMC{}
		if err := admin.Get(ctx, types.NamespacedName{Name: name}, b); err != nil {
			return err.Error()
		}
		return conditionText(b.Status.Conditions, kind)
	}
}

var _ = Describe("Outages", func() {
	It("a BMC that does not answer is noticed within one poll, moves nothing, and its server goes on within seconds of its return", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		name := serverOf(m)
		Expect(m.SetReachability(emulator.Refusing)).To(Succeed())
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionBMCReachable)).WithTimeout(soon).Should(HavePrefix("False/"))
		Eventually(bmcCondition(ctx, m.Name(), v1alpha1.ConditionReady)).WithTimeout(soon).Should(Equal("False/ConnectionFailed"))
		create(ctx, newClaim("during-outage", m))
		Consistently(func() v1alpha1.ServerState { return getServer(ctx, name).Status.State }).ShouldNot(Equal(v1alpha1.StateError))

		By("answering again")
		Expect(m.SetReachability(emulator.Reachable)).To(Succeed())
		Eventually(claimCondition(ctx, "during-outage", "Ready")).WithTimeout(40 * time.Second).Should(Equal("True/Running"))
		Expect(serverCondition(ctx, name, v1alpha1.ConditionBMCReachable)()).To(Equal("True/Connected"))
	})

	It("no deadline counts the time in which a BMC does not answer", func(ctx SpecContext) {
		m := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Delays = emulator.Delays{Boot: time.Hour} })
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Discovery/On"))
		Expect(m.SetReachability(emulator.Refusing)).To(Succeed())
		Eventually(func() bool {
			clock := getServer(ctx, name).Status.Lifecycle.Clock
			return clock != nil && clock.Held
		}).Should(BeTrue())

		By("having been in the state, unreachable, for longer than every deadline")
		theWorld.stopManager()
		Eventually(func() error {
			s := getServer(ctx, name)
			long := metav1.NewMicroTime(time.Now().Add(-48 * time.Hour))
			s.Status.Lifecycle.EnteredAt, s.Status.Lifecycle.Clock.AsOf = long, long
			return admin.Status().Update(ctx, s)
		}).Should(Succeed())
		theWorld.startManager(ctx)
		Consistently(func() v1alpha1.ServerState { return getServer(ctx, name).Status.State }).Should(Equal(v1alpha1.StateDiscovery))
		Expect(m.SetReachability(emulator.Reachable)).To(Succeed())
		Eventually(serverCondition(ctx, name, v1alpha1.ConditionBMCReachable)).WithTimeout(40 * time.Second).Should(Equal("True/Connected"))
		Consistently(func() v1alpha1.ServerState { return getServer(ctx, name).Status.State }).Should(Equal(v1alpha1.StateDiscovery))
	})

	It("nothing is done to a running machine by a manager that was away", func(ctx SpecContext) {
		m := claimed(ctx, "left-alone")
		boots, before := m.Boots(), theWorld.fleet.LastWrite()
		theWorld.stopManager()
		theWorld.startManager(ctx)
		Consistently(touched(m, before)).Should(BeEmpty())
		Expect(m.Boots()).To(Equal(boots))
		Expect(claimCondition(ctx, "left-alone", "Ready")()).To(Equal("True/Running"))
	})
})
