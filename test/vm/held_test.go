// SPDX-License-Identifier: Apache-2.0

package vm

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator/vm"
	"github.com/metalaw/metalaw/test/vm/images"
)

var _ = Describe("A disk that a RAID array with a mapping on top holds", func() {
	It("is released by the agent and erased, every byte", func(ctx SpecContext) {
		theWorld.restartWith(ctx, images.Probe, images.ProbeHeld)
		disk := theWorld.disk("HELD", vm.Virtio, 16*mebibyte)
		m := theWorld.machine(ctx, []vm.Disk{disk})
		Eventually(state(ctx, m)).Should(Equal("Available/Off"))
		claim(ctx, "held", m)
		expectMarked(disk)
		release(ctx, "held")
		Eventually(m.Console).WithTimeout(wiped).Should(ContainSubstring("workload: a mapping on an array holds the disk"))
		Eventually(func() policyv1alpha1.WipeState { done, _ := wipeOf(ctx, m); return done }).WithTimeout(wiped).
			Should(Equal(policyv1alpha1.WipeVerified))
		expectBlank(disk)
		_, each := wipeOf(ctx, m)
		Expect(each["HELD"].Steps).To(ContainElement(And(HaveField("Method", "release"), HaveField("Result", policyv1alpha1.EraseSucceeded),
			HaveField("Parameters", ContainSubstring("RAID array md0")))))
		Expect(each["HELD"].Method).NotTo(ContainSubstring("release"))
		theWorld.retire(m)
	}, NodeTimeout(2*wiped))
})
