// SPDX-License-Identifier: Apache-2.0

package vm

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator/vm"
	"github.com/metalaw/metalaw/test/vm/images"
)

// These specs say what the agent reports. What a policy makes of it, under Fail and under Report, is decided by the registry.
var _ = Describe("Storage that the kernel of the agent does not show", Ordered, func() {
	var m machine
	var seen vm.Disk
	var unseen []vm.Disk
	before := map[string][32]byte{}

	BeforeAll(func(ctx SpecContext) {
		governed(ctx, "hidden: Fail", "hidden: Report")
		seen = theWorld.disk("HIDDEN-SEEN", vm.Virtio, 16*mebibyte)
		unseen = []vm.Disk{
			theWorld.disk("HIDDEN-SCSI", vm.LSI, 16*mebibyte),
			theWorld.disk("HIDDEN-SATA", vm.SATA, 16*mebibyte),
		}
		for _, disk := range unseen {
			fill(disk)
			before[disk.Serial] = sum(disk)
		}
		m = theWorld.machine(ctx, append([]vm.Disk{seen}, unseen...))
	})

	AfterAll(func() { theWorld.retire(m) })

	It("is in the report of the probe, each with its function and what to do", func(ctx SpecContext) {
		Eventually(func() *policyv1alpha1.ProbeReport { return inventory(ctx, m).Report }).Should(Not(BeNil()))
		data := inventory(ctx, m).Report.Data
		Expect(data.HiddenKnown).To(BeTrue())
		Expect(data.Hidden).To(ConsistOf(
			And(HaveField("PCIID", "1000:0012"), HaveField("Name", "SCSI controller"), HaveField("Reason", ContainSubstring("no driver serves it"))),
			And(HaveField("PCIID", "8086:2922"), HaveField("Name", "SATA controller"), HaveField("Reason", ContainSubstring("no driver serves it"))),
		))
		for _, s := range data.Hidden {
			Expect(s).To(And(HaveField("Source", policyv1alpha1.HiddenByAgent), HaveField("Address", Not(BeEmpty()))))
		}
		Expect(data.Storage).To(ConsistOf(HaveField("Serial", "HIDDEN-SEEN")))
	}, NodeTimeout(booted))

	It("is in the report of the wipe, and keeps every byte", func(ctx SpecContext) {
		Eventually(state(ctx, m)).Should(Equal("Available/Off"))
		claim(ctx, "hidden", m)
		expectMarked(seen)
		release(ctx, "hidden")
		Eventually(func() policyv1alpha1.WipeState { done, _ := wipeOf(ctx, m); return done }).WithTimeout(wiped).
			Should(Equal(policyv1alpha1.WipeVerified))
		wipe := inventory(ctx, m).Wipe
		Expect(wipe.HiddenKnown).To(BeTrue())
		var byAgent []policyv1alpha1.HiddenStorage
		for _, s := range wipe.Hidden {
			if s.Source == policyv1alpha1.HiddenByAgent {
				byAgent = append(byAgent, s)
			}
		}
		Expect(byAgent).To(HaveLen(2))
		expectBlank(seen)
		for _, disk := range unseen {
			Expect(sum(disk)).To(Equal(before[disk.Serial]), disk.Serial)
		}
	}, NodeTimeout(2*wiped))
})

var _ = Describe("A namespace that is attached to no controller", func() {
	It("makes the wipe fail, and keeps every byte", func(ctx SpecContext) {
		seen, detached := theWorld.disk("DETACHED-SEEN", vm.Virtio, 16*mebibyte), theWorld.disk("DETACHED", vm.NVMeDetached, 16*mebibyte)
		fill(detached)
		before := sum(detached)
		governed(ctx, "accepts: [Wiped, Blank, Attested]", "accepts: [Wiped, Blank, Attested, Data]", "hidden: Fail", "hidden: Report",
			"cordonMostPercent: 2", "cordonMostPercent: 0") // a disk that cannot be read has its server cordoned
		m := theWorld.machine(ctx, []vm.Disk{seen, detached})
		Eventually(state(ctx, m)).Should(Equal("Available/Off"))
		claim(ctx, "detached", m)
		release(ctx, "detached")
		Eventually(func() policyv1alpha1.WipeState { done, _ := wipeOf(ctx, m); return done }).WithTimeout(wiped).
			Should(Equal(policyv1alpha1.WipeFailed))
		_, each := wipeOf(ctx, m)
		Expect(each["DETACHED"].Message).To(ContainSubstring("attached to no controller of this machine"))
		expectBlank(seen)
		Expect(sum(detached)).To(Equal(before))
		theWorld.retire(m)
	}, NodeTimeout(2*wiped))
})

// Linux 6.1 shows a namespace whose zones it does not support as a disk without a capacity.
var _ = Describe("A namespace of a format that the kernel does not know", func() {
	It("is named by the probe, keeps the server from being offered, and keeps every byte", func(ctx SpecContext) {
		seen, zoned := theWorld.disk("ZONED-SEEN", vm.Virtio, 16*mebibyte), theWorld.disk("ZONED", vm.NVMeZoned, 48*mebibyte)
		before := sum(zoned)
		m := theWorld.machine(ctx, []vm.Disk{seen, zoned})
		Eventually(state(ctx, m)).Should(HavePrefix("Error/"))
		Expect(inventory(ctx, m).Report.Data.Storage).To(ContainElement(And(HaveField("Serial", zoned.Serial),
			HaveField("Content", policyv1alpha1.ContentUnreadable), HaveField("ContentFound", ContainSubstring("no capacity")))))
		Expect(sum(zoned)).To(Equal(before))
		theWorld.retire(m)
	})
})

// Debian's cloud kernel has no driver for the adapter, so the whole image boots.
var _ = Describe("A RAID adapter whose driver shows no volume", func() {
	It("is named by the probe, and keeps the server from being offered", func(ctx SpecContext) {
		theWorld.restartWith(ctx, images.ProbeFull, images.ProbeFull)
		m := theWorld.machine(ctx, []vm.Disk{theWorld.disk("RAID-SEEN", vm.Virtio, 16*mebibyte)}, func(d *vm.Description) {
			d.Adapters = []string{"megasas"}
		})
		Eventually(state(ctx, m)).WithTimeout(chained).Should(HavePrefix("Error/"))
		Expect(inventory(ctx, m).Report.Data.Hidden).To(ContainElement(And(HaveField("PCIID", "1000:0060"),
			HaveField("Reason", ContainSubstring("its driver megaraid_sas shows no volume")))))
		theWorld.retire(m)
	}, NodeTimeout(chained))
})
