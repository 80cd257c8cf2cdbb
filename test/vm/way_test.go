// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/redfish/emulator/vm"
)

const (
	mebibyte = 1 << 20
	// phaseBeforeFreeze is on the console once the agent collects.
	phaseBeforeFreeze = "] collect: begins"
)

var _ = Describe("A machine that truly boots", Ordered, func() {
	var m machine
	var disks []vm.Disk

	It("is inspected by the agent's image and offered", func(ctx SpecContext) {
		disks = []vm.Disk{
			theWorld.disk("WAY-NVME", vm.NVMe, 64*mebibyte),
			// It reports success for a discard, and keeps the data.
			theWorld.disk("WAY-LYING", vm.Virtio, 48*mebibyte, func(d *vm.Disk) { d.IgnoreDiscard = true }),
			theWorld.disk("WAY-ATA", vm.ATA, 32*mebibyte),
		}
		began := time.Now()
		m = theWorld.machine(ctx, disks, func(d *vm.Description) {
			d.NICs[0].Neighbour = &vm.Neighbour{ChassisID: "leaf-1", PortID: "Ethernet4", SystemName: "leaf-1.example"}
		})
		// The last phase is not among them: the power is cut once the report is stored, which may be before a line reached the console.
		for _, phase := range []string{"] network:", "] modules:", "] config:", "] collect: begins"} {
			Eventually(m.Console).Should(ContainSubstring(phase))
		}
		Eventually(state(ctx, m)).Should(Equal("Available/Off"))
		AddReportEntry("from BMC to Available", time.Since(began))
		Eventually(m.bmc.Power).Should(Equal(emulator.PowerOff))
		Eventually(m.PID).Should(BeZero())
		report := inventory(ctx, m).Report
		Expect(report).NotTo(BeNil())
		Expect(report.Data.SystemInfo.SystemInformation.SerialNumber).To(Equal(m.Description().SerialNumber))
		dimm := m.Description().DIMM
		Expect(report.Data.Memory).To(HaveLen(1))
		Expect(report.Data.Memory[0]).To(And(HaveField("SerialNumber", dimm.SerialNumber), HaveField("PartNumber", dimm.PartNumber),
			HaveField("Vendor", dimm.Manufacturer), HaveField("SizeBytes", int64(512*mebibyte))))
		var serials []string
		for _, disk := range report.Data.Storage {
			serials = append(serials, disk.Serial)
		}
		Expect(serials).To(ConsistOf("WAY-NVME", "WAY-LYING", "WAY-ATA"))
	}, NodeTimeout(booted))

	It("boots a claim's workload, which marks its disks", func(ctx SpecContext) {
		claim(ctx, "way", m)
		Eventually(m.Console).Should(ContainSubstring("workload: done, 3 disks"))
		expectMarked(disks...)
	}, NodeTimeout(booted))

	It("is erased after its release, every byte of every disk", func(ctx SpecContext) {
		began := time.Now()
		release(ctx, "way")
		Eventually(m.ConsoleOf).WithArguments(2).Should(ContainSubstring("power button, good bye"))
		Eventually(state(ctx, m)).WithTimeout(wiped).Should(Equal("Available/Off"))
		AddReportEntry("from release to Available", time.Since(began))
		expectBlank(disks...)
		done, each := wipeOf(ctx, m)
		Expect(done).To(Equal(policyv1alpha1.WipeVerified))
		Expect(each).To(HaveLen(3))
		records := recordsOf(ctx, m)
		Expect(records).To(HaveLen(1))
		Expect(records[0].State).To(Equal(policyv1alpha1.WipeVerified))
		Expect(records[0].Entry).To(Equal(inventory(ctx, m).Wipe.Entry))
		Expect(records[0].Holder).To(HaveField("Name", "way"))
		Expect(records[0].Media).To(HaveLen(3))
		for _, medium := range records[0].Media {
			Expect(medium.Method).NotTo(BeEmpty())
			Expect(medium.Verification).To(HaveField("Passed", true))
		}
	}, NodeTimeout(wiped))
})
