// SPDX-License-Identifier: Apache-2.0

package story

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// formerDefault is the default bundle of the build before this one.
func formerDefault() *bundle.Bundle {
	GinkgoHelper()
	all, err := policies.Former()
	Expect(err).NotTo(HaveOccurred())
	name := "default-1.0.0-9e2d2d5d15"
	Expect(all).To(HaveKey(name))
	b, found, err := bundle.Compile(all[name], policies.Vocabulary())
	Expect(err).NotTo(HaveOccurred())
	Expect(found.Err()).NotTo(HaveOccurred())
	return b
}

// What takes effect after promotion must not take effect before: a fleet that promoted nothing goes on as it did.
var _ = Describe("The default bundle of the former build", func() {
	It("still takes a server the whole way, without a halt", func(ctx SpecContext) {
		former := formerDefault()
		govern(ctx, former)
		m := theWorld.machine(ctx, nil)
		name := serverOf(m)
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		Eventually(revisionOf(ctx, name)).Should(Equal(former.Revision.Name))

		create(ctx, newClaim("former", m))
		Eventually(claimCondition(ctx, "former", "Ready")).Should(Equal("True/Running"))
		deleteClaim(ctx, "former")
		Eventually(state(ctx, name)).Should(Equal("Available/Off"))
		for _, d := range m.Drives() {
			Expect(d.Contents()).To(BeEmpty())
		}
		s := getServer(ctx, name)
		Expect(strings.Join(moves(s), ", ")).To(HaveSuffix("Claimed Reserved, ClaimEnded Cleanup, Wiped Available"))
		Expect(haltMessage(s)).To(BeEmpty())
		Expect(s.Status.Lifecycle.Revision).To(Equal(former.Revision.Name))
	})
})
