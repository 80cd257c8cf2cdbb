// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/redfish/emulator/vm"
)

var _ = Describe("A wipe that goes wrong", Ordered, func() {
	const size = 32 * mebibyte
	upperHalf := vm.Range{From: size / 2, To: size}
	// slow lets a disk take some seconds for its wipe, so that there is a middle.
	const slow = 20 * time.Millisecond
	var m machine
	var disks []vm.Disk
	var good, lying, failing *vm.Server
	var entry int64

	erasing := func(ctx SpecContext) func() policyv1alpha1.DiskWipeState {
		return func() policyv1alpha1.DiskWipeState { _, each := wipeOf(ctx, m); return each["WRONG-GOOD"].State }
	}

	BeforeAll(func(ctx SpecContext) {
		for _, d := range []struct {
			serial string
			bus    vm.Bus
			server **vm.Server
		}{{"WRONG-GOOD", vm.Virtio, &good}, {"WRONG-LIES", vm.NVMe, &lying}, {"WRONG-EIO", vm.Virtio, &failing}} {
			disk, server := theWorld.broken(d.serial, d.bus, size)
			disks = append(disks, disk)
			*d.server = server
		}
		m = theWorld.machine(ctx, disks)
		Eventually(state(ctx, m)).Should(Equal("Available/Off"))
		claim(ctx, "wrong", m)
		Eventually(m.Console).Should(ContainSubstring("workload: done, 3 disks"))
		expectMarked(disks...)
		good.SetFaults(vm.Faults{Delay: slow})
		lying.SetFaults(vm.Faults{Lies: upperHalf})
		failing.SetFaults(vm.Faults{Fails: upperHalf})
		release(ctx, "wrong")
	}, NodeTimeout(2*booted))

	AfterAll(func() { theWorld.retire(m) })

	It("stays dirty and begins anew after a power cut in the middle", func(ctx SpecContext) {
		Eventually(erasing(ctx)).WithPolling(20 * time.Millisecond).Should(Equal(policyv1alpha1.DiskErasing))
		boots := m.bmc.Boots()
		m.bmc.PowerBehindBack(false)
		Expect(getServer(ctx, m.server()).Status.Lifecycle.Marks).To(ContainElement(v1alpha1.MarkDirty))
		Eventually(m.bmc.Boots).Should(BeNumerically(">", boots))
		Expect(getServer(ctx, m.server()).Status.Lifecycle.Marks).To(ContainElement(v1alpha1.MarkDirty))
	}, NodeTimeout(booted))

	It("goes on in the same boot when the manager ends in the middle", func(ctx SpecContext) {
		Eventually(m.Console).Should(ContainSubstring("] wipe:"))
		Eventually(erasing(ctx)).WithPolling(20 * time.Millisecond).Should(Equal(policyv1alpha1.DiskErasing))
		boots := m.bmc.Boots()
		entry = getServer(ctx, m.server()).Status.Lifecycle.Entry
		theWorld.stopManager()
		theWorld.startManager(ctx)
		Eventually(func() policyv1alpha1.WipeState { done, _ := wipeOf(ctx, m); return done }).WithTimeout(wiped).
			Should(Equal(policyv1alpha1.WipeFailed))
		Expect(m.bmc.Boots()).To(Equal(boots))
		Expect(inventory(ctx, m).Wipe.Entry).To(Equal(entry))
	}, NodeTimeout(wiped))

	It("names the disk that lies and the one with errors, and offers nothing", func(ctx SpecContext) {
		Eventually(state(ctx, m)).WithTimeout(soon).Should(Equal("Error/Off"))
		_, each := wipeOf(ctx, m)
		Expect(each["WRONG-GOOD"].State).To(Equal(policyv1alpha1.DiskVerified))
		Expect(each["WRONG-LIES"].State).To(Equal(policyv1alpha1.DiskFailed))
		Expect(each["WRONG-EIO"].State).To(Equal(policyv1alpha1.DiskFailed))
		expectBlank(disks[0])
		marked, _ := scan(disks[1].Path)
		Expect(marked).To(BeTrue(), "the disk that lies still holds a tenant's data, and was found out")
		for _, move := range getServer(ctx, m.server()).Status.Lifecycle.History {
			Expect(move.Rule).NotTo(Equal("Wiped"))
		}
		Eventually(m.bmc.Power).Should(Equal(emulator.PowerOff))
	}, NodeTimeout(soon))

	It("erases only what failed once that is healed", func(ctx SpecContext) {
		for _, disk := range []*vm.Server{good, lying, failing} {
			disk.SetFaults(vm.Faults{})
		}
		before := good.Writes()
		operate(ctx, m, "retry")
		Eventually(state(ctx, m)).WithTimeout(wiped).Should(Equal("Available/Off"))
		expectBlank(disks...)
		Expect(good.Writes()).To(Equal(before), "what was erased and proved is not written again")
	}, NodeTimeout(wiped))
})
