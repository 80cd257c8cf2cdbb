// SPDX-License-Identifier: Apache-2.0

package vm

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/drives"
	"github.com/metalaw/metalaw/redfish/emulator/vm"
)

var _ = Describe("The drives that a BMC lists", func() {
	It("are found by serial number among the disks of a true kernel, on each bus, and one that is not attached is hidden", func(ctx SpecContext) {
		disks := []vm.Disk{
			theWorld.disk("LIST-NVME", vm.NVMe, 16*mebibyte), theWorld.disk("LIST-ATA", vm.ATA, 16*mebibyte),
			theWorld.disk("LIST-SCSI", vm.SCSI, 16*mebibyte), theWorld.disk("LIST-VIRTIO", vm.Virtio, 16*mebibyte),
			theWorld.disk("LIST-USB", vm.USB, 16*mebibyte),
		}
		m := theWorld.machine(ctx, disks, func(d *vm.Description) {
			d.Unseen = []vm.Disk{{Bus: vm.SCSI, Serial: "LIST-NOWHERE", SizeBytes: 16 * mebibyte}}
		})
		storage := func() *policyv1alpha1.BMCStorage { return inventory(ctx, m).BMCStorage }
		Eventually(storage).Should(And(Not(BeNil()), HaveField("State", policyv1alpha1.BMCStorageListed), HaveField("Drives", HaveLen(5))))
		Eventually(func() *policyv1alpha1.ProbeReport { return inventory(ctx, m).Report }).ShouldNot(BeNil())
		var seen []drives.Seen
		for _, d := range inventory(ctx, m).Report.Data.Storage {
			seen = append(seen, drives.Seen{Serial: d.Serial, WWID: d.WWID, Name: d.Name})
		}
		hidden, covered := drives.Unseen(storage(), seen)
		Expect(hidden).To(ConsistOf(HaveField("Serial", "LIST-NOWHERE")), "seen: %+v", seen)
		Expect(covered).To(BeEmpty())
		theWorld.retire(m)
	}, NodeTimeout(booted))
})
