// SPDX-License-Identifier: Apache-2.0

package story

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

var _ = Describe("A wipe and disks that are not the machine's", func() {
	It("leaves a remote disk as it is, erases the local one and the stick, and stops the server with the disk's name and the reason", func(ctx SpecContext) {
		m := theWorld.machine(ctx, func(s *emulator.MachineSpec) {
			s.Drives = []emulator.DriveSpec{
				{Name: "nvme0n1", SizeBytes: 1e9},
				{Name: "nvme1n1", Serial: "ELSEWHERE", SizeBytes: 1e9, Transport: emulator.TransportTCP},
				{Name: "sda", SizeBytes: 1e9, Transport: emulator.TransportUSBStick},
			}
		})
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		create(ctx, newClaim("remote-disk", m))
		Eventually(claimCondition(ctx, "remote-disk", "Ready")).Should(Equal("True/Running"))
		m.Drives()[1].Write("a volume of another system")
		m.Drives()[2].Write("a copy on the stick")
		deleteClaim(ctx, "remote-disk")
		Eventually(state(ctx, name)).Should(Equal("Error/Off"))

		Expect(m.Drives()[0].Contents()).To(BeEmpty())
		Expect(m.Drives()[1].Contents()).To(Equal("a volume of another system"))
		Expect(m.Drives()[1].Erasures()).To(BeZero())
		Expect(m.Drives()[2].Contents()).To(BeEmpty())

		s := getServer(ctx, name)
		Expect(s.Status.Lifecycle).To(And(HaveField("Rule", "WipeFailed"), HaveField("Marks", ContainElement("Dirty"))))
		Expect(meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionStalled).Message).To(ContainSubstring(
			"1 of 3 disks may still hold data: /dev/nvme1n1 (serial ELSEWHERE): not erased: it is remote: its controller nvme0 is reached over tcp"))

		inventory := &policyv1alpha1.ServerInventory{}
		Expect(admin.Get(ctx, types.NamespacedName{Name: s.Spec.SystemUUID}, inventory)).To(Succeed())
		Expect(inventory.Wipe.Disks).To(ConsistOf(
			And(HaveField("Name", "nvme0n1"), HaveField("Transport", "nvme/pcie"), HaveField("State", policyv1alpha1.DiskVerified)),
			And(HaveField("Name", "sda"), HaveField("Transport", "usb"), HaveField("State", policyv1alpha1.DiskVerified)),
			And(HaveField("Name", "nvme1n1"), HaveField("Transport", "nvme/tcp"), HaveField("State", policyv1alpha1.DiskFailed))))
		Expect(inventory.Wipe.Skipped).To(BeEmpty())
	})
})
