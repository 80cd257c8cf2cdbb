// SPDX-License-Identifier: Apache-2.0

package story

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// annotateBMC sets an annotation of a BMC.
func annotateBMC(ctx context.Context, name, annotation, value string) {
	GinkgoHelper()
	Eventually(func() error {
		b := &v1alpha1.BMC{}
		if err := admin.Get(ctx, types.NamespacedName{Name: name}, b); err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&b.ObjectMeta, annotation, value)
		return admin.Update(ctx, b)
	}).Should(Succeed())
}

var _ = Describe("Systems that say little of themselves", func() {
	It("boots a machine over PXE whose BMC reports no network interface", func(ctx SpecContext) {
		m := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Profile = emulator.ProfileGB200 })
		Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))
		create(ctx, newClaim("without-interfaces", m))
		Eventually(claimCondition(ctx, "without-interfaces", "Ready")).Should(Equal("True/Running"))
		Expect(running(m)()).To(Equal("Pxe"))
		deleteClaim(ctx, "without-interfaces")

		By("erasing nothing before a person answers for the machine, of which its BMC shows no serial number and no address")
		Eventually(state(ctx, serverOf(m))).Should(HavePrefix("Error/"))
		Expect(serverCondition(ctx, serverOf(m), v1alpha1.ConditionIdentityUnproven)()).To(Equal("True/MachineUnproven"))
		Expect(theWorld.begunToErase(m, m.Drives()[0].Name)()).To(BeFalse())
		operateFor(ctx, serverOf(m), v1alpha1.OperationProve, "rack label", v1alpha1.OperationByAnnotation, "admin")
		Eventually(operated(ctx, serverOf(m))).Should(Equal("prove Succeeded"))
		operate(ctx, serverOf(m), v1alpha1.OperationRetry)
		Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))
		Expect(serverCondition(ctx, serverOf(m), v1alpha1.ConditionIdentityUnproven)()).To(Equal("none"))
	})

	It("tells two nodes apart that share a serial number, and switches on neither without a boot override", func(ctx SpecContext) {
		first := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Profile = emulator.ProfileCray })
		second := theWorld.fleet.Add(emulator.MachineSpec{Name: first.Name() + "-second", Behind: first})
		Expect(second.Err()).NotTo(HaveOccurred())
		Eventually(bmcCondition(ctx, first.Name(), "SystemsAccepted")).Should(Equal("False/SystemUnidentified"))
		before := theWorld.fleet.LastWrite()
		assigned := ""
		for _, m := range []*emulator.Machine{first, second} {
			assigned += fmt.Sprintf("%s: {uuid: %s, serial: %q, mac: %q}\n", m.SystemURI(), m.Identity().UUID, m.Identity().SerialNumber, m.NICs()[0].MACAddress)
		}
		annotateBMC(ctx, first.Name(), v1alpha1.SystemUUIDsAnnotation, assigned)
		// The manager may have listed the systems before the second node was added.
		annotateBMC(ctx, first.Name(), v1alpha1.OperationAnnotation, v1alpha1.OperationRetry)
		Eventually(bmcCondition(ctx, first.Name(), "SystemsAccepted")).Should(Equal("True/SystemsKnown"))
		for i, m := range []*emulator.Machine{first, second} {
			name := fmt.Sprintf("%s-system-%d", first.Name(), i)
			Eventually(serverCondition(ctx, name, "BootOverrideMissing")).Should(Equal("True/BootOverrideMissing"))
			Eventually(state(ctx, name)).Should(Equal("Discovery/Off"))
			Expect(getServer(ctx, name).Spec.SystemUUID).To(Equal(m.Identity().UUID))
		}
		Consistently(touched(first, before)).Should(BeEmpty())
		Expect(touched(second, before)()).To(BeEmpty())
	})

	It("names the part that is critical, and lets an open lid stop nothing", func(ctx SpecContext) {
		m := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Profile = emulator.ProfileHPE },
			func(m *emulator.Machine) { m.SetCritical(emulator.PartIntrusion) })
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Eventually(serverCondition(ctx, name, "Healthy")).Should(Equal("False/HealthTolerated"))

		broken := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Profile = emulator.ProfileHPE },
			func(m *emulator.Machine) { m.SetCritical("Memory") }) // known before it could be switched on: in Error nothing switches it off
		Eventually(serverCondition(ctx, serverOf(broken), "Healthy")).Should(Equal("False/HealthCritical"))
		Eventually(state(ctx, serverOf(broken))).Should(Equal("Error/Off"))
		Expect(getServer(ctx, serverOf(broken)).Status.Lifecycle.Rule).To(Equal("HardwareFault"))
	})
})
