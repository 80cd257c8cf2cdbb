// SPDX-License-Identifier: Apache-2.0

package vm

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/metalaw/metalaw/redfish/emulator/vm"
	"github.com/metalaw/metalaw/test/vm/images"
)

var _ = Describe("The image that users get", func() {
	It("boots by the iPXE of a network card and reports the disk of an AHCI controller", func(ctx SpecContext) {
		theWorld.restartWith(ctx, images.ProbeFull)
		DeferCleanup(func(ctx SpecContext) { theWorld.restartWith(ctx, images.Probe) })
		m := theWorld.machine(ctx, []vm.Disk{theWorld.disk("CHAIN-SATA", vm.SATA, 16*mebibyte)}, func(d *vm.Description) {
			d.Chain = vm.IPXE
			d.NICs[0].Neighbour = &vm.Neighbour{ChassisID: "leaf-1", PortID: "Ethernet4", SystemName: "leaf-1.example"}
		})
		// The host would have named the serial port at the end.
		Eventually(m.Console).Should(MatchRegexp(`Command line: .*ignition\.config\.url=http://10\.0\.2\.2:\d+/.* console=ttyAMA0\s`))
		Eventually(state(ctx, m)).WithTimeout(chained).Should(Equal("Available/Off"))
		report := inventory(ctx, m).Report.Data
		Expect(report.Storage).To(HaveLen(1))
		Expect(report.Storage[0].Serial).To(Equal("CHAIN-SATA"))
	}, SpecTimeout(chained))
})
