// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator/vm"
)

// unmanaged adds a virtual machine that shows the UUID of another one, and of which the operator is not told.
func (w *world) unmanaged(of machine, disk vm.Disk, serial string) machine {
	GinkgoHelper()
	d := of.Description()
	d.Name += fmt.Sprintf("-twin%d", len(w.vms))
	d.SerialNumber, d.Disks = serial, []vm.Disk{disk}
	d.NICs = []vm.NIC{{MACAddress: fmt.Sprintf("00:16:3e:77:00:%02x", len(w.vms))}}
	spec, guest := w.backend.Machine(d)
	spec.Username, spec.Password = "admin", "password"
	twin := machine{VM: guest, bmc: w.fleet.Add(spec), name: d.Name}
	Expect(twin.bmc.Err()).NotTo(HaveOccurred())
	w.vms = append(w.vms, guest)
	return twin
}

// bootsInstead freezes a machine and has its twin boot what was prepared for it, until the registry has refused the twin.
func bootsInstead(ctx context.Context, m, twin machine, refused string) {
	GinkgoHelper()
	Eventually(m.Freeze).WithPolling(20*time.Millisecond).Should(Succeed(), "it listens a moment after it is switched on")
	twin.bmc.SetOverride("Once", "Pxe")
	twin.bmc.PowerBehindBack(true)
	Eventually(twin.Console).Should(ContainSubstring(refused))
	twin.bmc.PowerBehindBack(false)
	Eventually(twin.PID).Should(BeZero())
}

var _ = Describe("Two machines of one UUID", Ordered, func() {
	var m, twin machine
	var own, foreign vm.Disk
	var before [32]byte

	It("are told apart when the foreign one answers the inspection first", func(ctx SpecContext) {
		own, foreign = theWorld.disk("TWIN-OWN", vm.NVMe, 16*mebibyte), theWorld.disk("TWIN-FOREIGN", vm.NVMe, 16*mebibyte)
		fill(foreign)
		before = sum(foreign)
		m = theWorld.machine(ctx, []vm.Disk{own}, func(d *vm.Description) {
			d.NICs = []vm.NIC{{MACAddress: fmt.Sprintf("00:16:3e:00:00:%02x", len(theWorld.vms))}}
		})
		twin = theWorld.unmanaged(m, foreign, "TWIN1")
		bootsInstead(ctx, m, twin, "another machine")
		condition := meta.FindStatusCondition(getServer(ctx, m.server()).Status.Conditions, v1alpha1.ConditionIdentityUnproven)
		Expect(condition).To(HaveField("Reason", v1alpha1.ReasonMachineContradicts))
		Expect(inventory(ctx, m).Report).To(BeNil())
		Expect(m.Thaw()).To(Succeed())
		Eventually(state(ctx, m)).Should(Equal("Available/Off"))
		Expect(inventory(ctx, m).Identity.Proved).To(HaveField("SystemSerial", m.Description().SerialNumber))
	}, NodeTimeout(2*booted))

	It("are told apart when the foreign one boots the wipe of the other: it keeps every byte", func(ctx SpecContext) {
		claim(ctx, "twin", m)
		release(ctx, "twin")
		Eventually(state(ctx, m)).Should(Equal("Cleanup/On"))
		bootsInstead(ctx, m, twin, "another machine")
		Expect(sum(foreign)).To(Equal(before))
		Expect(m.Thaw()).To(Succeed())
		Eventually(state(ctx, m)).WithTimeout(wiped).Should(Equal("Available/Off"))
		expectBlank(own)
		Expect(sum(foreign)).To(Equal(before))
	}, NodeTimeout(2*wiped))

	It("are told apart though their serial numbers are equal: the foreign one keeps every byte", func(ctx SpecContext) {
		equal := theWorld.unmanaged(m, foreign, m.Description().SerialNumber)
		claim(ctx, "equal-twin", m)
		release(ctx, "equal-twin")
		Eventually(state(ctx, m)).Should(Equal("Cleanup/On"))
		bootsInstead(ctx, m, equal, "no address that the BMC shows")
		Expect(sum(foreign)).To(Equal(before))
		done, _ := wipeOf(ctx, m)
		Expect(done).To(Equal(policyv1alpha1.WipeFailed), "nothing proves which of the two it was")
		theWorld.retire(m)
	}, NodeTimeout(2*wiped))
})
