// SPDX-License-Identifier: Apache-2.0

package story

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/metalaw/metalaw/redfish/emulator"
)

var _ = Describe("A boot override that the BMC accepts and ignores", func() {
	It("keeps the claimed machine off, says so, and boots it once the override holds", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		trouble := m.Inject(emulator.PatchIgnored())
		before, boots := theWorld.fleet.LastWrite(), m.Boots()
		written := func(what string) int {
			n := 0
			for _, w := range touched(m, before)() {
				if strings.Contains(w, what) {
					n++
				}
			}
			return n
		}
		create(ctx, newClaim("override-ignored", m))
		Eventually(serverCondition(ctx, serverOf(m), "Ready")).Should(Equal("False/BootOverrideIgnored"))
		Consistently(claimCondition(ctx, "override-ignored", "Ready")).ShouldNot(HavePrefix("True"))
		Expect(m.Boots()).To(Equal(boots))
		Expect(m.Power()).To(Equal(emulator.PowerOff))
		Expect(written("BootSourceOverrideTarget")).To(Equal(1), "one attempt")
		Expect(written(`"ResetType":"On"`)).To(BeZero(), "and no power-on")

		By("the BMC doing as it says")
		trouble.Remove()
		Eventually(claimCondition(ctx, "override-ignored", "Ready")).WithTimeout(time.Minute).Should(Equal("True/Running"))
		Expect(m.Boots()).To(Equal(boots + 1))
		Expect(written(`"ResetType":"On"`)).To(Equal(1))
	})

	It("is told with the BMC's words where it is refused, and boots once it is taken", func(ctx SpecContext) {
		m := theWorld.available(ctx)
		boots := m.Boots()
		trouble := m.Inject(emulator.Fault{Name: "OverrideRefused", Method: "PATCH", Path: "/redfish/v1/Systems/**", Action: emulator.Action{
			Status: 400, Body: `{"error":{"code":"Base.1.13.PropertyNotWritable","message":"BootSourceOverrideTarget is locked by the setup."}}`}})
		create(ctx, newClaim("override-refused", m))
		Eventually(eventReasons(ctx, serverOf(m))).Should(ContainElement("PowerRefused"))
		s := getServer(ctx, serverOf(m))
		Expect(s.Status.Lifecycle.Request.Refusal).To(ContainSubstring("BootSourceOverrideTarget is locked by the setup"))
		Expect(s.Status.Lifecycle.Request.Refusals).To(BeNumerically(">=", 1))
		Expect(m.Boots()).To(Equal(boots))

		trouble.Remove()
		Eventually(claimCondition(ctx, "override-refused", "Ready")).Should(Equal("True/Running"))
		Expect(m.Boots()).To(Equal(boots + 1))
	})
})

var _ = DescribeTable("A make whose settings resource is not where its override goes, or whose manager is one of two",
	func(ctx SpecContext, profile string) {
		m := theWorld.machine(ctx, func(s *emulator.MachineSpec) { s.Profile = profile })
		Eventually(state(ctx, serverOf(m))).Should(Equal("Available/Off"))
		for _, w := range m.Writes() {
			Expect(w.Path == m.SystemURI() && w.Status >= 400).To(BeFalse(), "%s %s was answered %d", w.Method, w.Path, w.Status)
		}
	},
	Entry("iDRAC9 7.x", emulator.ProfileDell),
	Entry("Lenovo XCC", emulator.ProfileLenovo),
	Entry("DGX H100", emulator.ProfileDGX),
)
