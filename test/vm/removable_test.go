// SPDX-License-Identifier: Apache-2.0

package vm

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator/vm"
	"github.com/metalaw/metalaw/test/vm/images"
)

// Debian's cloud kernel knows no USB, so the whole image boots.
var _ = DescribeTable("A USB stick in a machine that is wiped", func(ctx SpecContext, word string, erased bool) {
	theWorld.restartWith(ctx, images.ProbeFull, images.ProbeFull)
	replace := []string{"accepts: [Wiped, Blank, Attested]", "accepts: [Wiped, Blank, Attested, Data]"}
	if word != "Erase" {
		replace = append(replace, "removable: Erase", "removable: "+word)
	}
	governed(ctx, replace...)
	fixed, stick := theWorld.disk("USB-FIXED-"+word, vm.Virtio, 16*mebibyte), theWorld.disk("USB-STICK-"+word, vm.USB, 16*mebibyte)
	fill(stick)
	before := sum(stick)
	m := theWorld.machine(ctx, []vm.Disk{fixed, stick})
	Eventually(state(ctx, m)).WithTimeout(chained).Should(Equal("Available/Off"))
	Expect(inventory(ctx, m).Report.Data.Storage).To(ContainElement(And(HaveField("Serial", stick.Serial), HaveField("Removable", true),
		HaveField("Content", policyv1alpha1.ContentData))))
	claim(ctx, "stick", m)
	expectMarked(fixed)
	release(ctx, "stick")
	Eventually(func() policyv1alpha1.WipeState { done, _ := wipeOf(ctx, m); return done }).WithTimeout(chained).
		Should(Equal(policyv1alpha1.WipeVerified))
	expectBlank(fixed)
	_, each := wipeOf(ctx, m)
	if erased {
		expectBlank(stick)
		Expect(each[stick.Serial]).To(And(HaveField("State", policyv1alpha1.DiskVerified), HaveField("Transport", "usb")))
	} else {
		Expect(sum(stick)).To(Equal(before))
		Expect(inventory(ctx, m).Wipe.Skipped).To(ContainElement(And(HaveField("Serial", stick.Serial), HaveField("Reason", ContainSubstring("removable")))))
	}
	theWorld.retire(m)
},
	Entry("is erased under Erase", "Erase", true, NodeTimeout(3*chained)),
	Entry("is left and named under Leave", "Leave", false, NodeTimeout(3*chained)),
)
