// SPDX-License-Identifier: Apache-2.0

package vm

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator/vm"
	"github.com/metalaw/metalaw/test/vm/images"
)

var _ = Describe("The image that users get", func() {
	It("boots by the iPXE of a network card and is offered, whatever a USB stick in it holds", func(ctx SpecContext) {
		theWorld.restartWith(ctx, images.ProbeFull, images.ProbeFull)
		governed(ctx, "removable: Erase", "removable: Leave")
		stick := theWorld.disk("CHAIN-STICK", vm.USB, 16*mebibyte)
		fill(stick)
		m := theWorld.machine(ctx, []vm.Disk{theWorld.disk("CHAIN-SATA", vm.SATA, 16*mebibyte), stick}, func(d *vm.Description) {
			d.Chain = vm.IPXE
		})
		// The host would have named the serial port at the end.
		Eventually(m.Console).Should(MatchRegexp(`Command line: .*ignition\.config\.url=http://10\.0\.2\.2:\d+/.* console=ttyAMA0\s`))
		Eventually(state(ctx, m)).WithTimeout(chained).Should(Equal("Available/Off"))
		report := inventory(ctx, m).Report.Data
		Expect(report.Storage).To(ConsistOf(
			And(HaveField("Serial", "CHAIN-SATA"), HaveField("Removable", false), HaveField("Content", policyv1alpha1.ContentBlank)),
			And(HaveField("Transport", "usb"), HaveField("Removable", true))))
	}, NodeTimeout(chained))
})
