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
})
