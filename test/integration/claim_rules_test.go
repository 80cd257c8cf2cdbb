// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/claim"
	"github.com/metalaw/metalaw/controllers/scheduler"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// exchanged is a bundle in force that a spec puts another one in the place of.
type exchanged struct{ atomic.Pointer[bundle.Bundle] }

func (e *exchanged) Active() *bundle.Bundle { return e.Load() }

var _ = Describe("A claim that was stored while no webhook answered", func() {
	const forbidding = `package metalaw.admission

deny contains {"code": "os", "message": "only linux boots here", "field": "spec.image"} if {
	input.kind == "ServerClaim"
	not startswith(input.object.spec.image, "linux")
}
`
	var p place
	var inForce exchanged
	var s *scheduler.Scheduler
	// compiled is the default bundle with other rules, and with a quota for the namespace unless it is negative.
	compiled := func(admission string, quota int) *bundle.Bundle {
		GinkgoHelper()
		files, err := policies.Shipped(policies.DefaultBundle)
		Expect(err).NotTo(HaveOccurred())
		files[bundle.AdmissionFile] = []byte(admission)
		files["admission_test.rego"] = []byte("package metalaw.admission_test\n")
		b, found, err := bundle.Compile(files, policies.Vocabulary())
		Expect(err).NotTo(HaveOccurred())
		Expect(b).NotTo(BeNil(), "%v", found)
		if quota >= 0 {
			b.Settings.Claims.Quota = bundle.Quota{Namespaces: map[string]int{p.namespace: quota}}
		}
		return b
	}
	BeforeEach(func(ctx context.Context) {
		p = newPlace(ctx)
		p.server(ctx, "one")
		p.server(ctx, "two")
	})
	run := func(ctx context.Context) {
		startManager(ctx, func(mgr ctrl.Manager) (err error) {
			if s, err = scheduler.Setup(ctx, mgr, scheduler.Options{Bundles: &inForce}); err != nil {
				return err
			}
			return claim.Setup(mgr, claim.Options{Scheduler: s})
		})
	}
	booting := func(image string) func(*v1alpha1.ServerClaim) {
		return func(c *v1alpha1.ServerClaim) { c.Spec.Image = image }
	}
	tooLong := func(c *v1alpha1.ServerClaim) {
		for range policies.MaxRequirements {
			c.Spec.ServerSelector.MatchExpressions = append(c.Spec.ServerSelector.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: "absent", Operator: metav1.LabelSelectorOpDoesNotExist})
		}
	}

	It("is held to the rules of the bundle in force, and to its quota, until another one allows it", func(ctx context.Context) {
		inForce.Store(compiled(forbidding, 1))
		first := p.claim(ctx, "first", booting("linux:1"))
		forbidden := p.claim(ctx, "forbidden", booting("windows:1"))
		run(ctx)
		Eventually(serverOf(ctx, first)).ShouldNot(BeEmpty())
		beyond := p.claim(ctx, "second", booting("linux:1"))
		Eventually(says(ctx, beyond, v1alpha1.ConditionBound)).Should(HavePrefix("False QuotaExceeded: "))
		Eventually(says(ctx, forbidden, v1alpha1.ConditionBound)).Should(Equal("False ClaimDenied: policy " + inForce.Active().Revision.Name +
			" forbids the claim: spec.image: only linux boots here [os]"))
		Consistently(func(g Gomega) {
			g.Expect(serverOf(ctx, beyond)(g)).To(BeEmpty())
			g.Expect(serverOf(ctx, forbidden)(g)).To(BeEmpty())
		}).Should(Succeed())

		inForce.Store(compiled("package metalaw.admission\n", -1))
		s.Wake()
		Eventually(func(g Gomega) int {
			bound := 0
			for _, c := range []*v1alpha1.ServerClaim{forbidden, beyond} {
				if serverOf(ctx, c)(g) != "" {
					bound++
				}
			}
			return bound
		}).Should(Equal(1), "there is one server left")
	})

	It("is not judged where its selector is longer than any is", func(ctx context.Context) {
		inForce.Store(compiled("package metalaw.admission\n", -1))
		c := p.claim(ctx, "long", tooLong)
		run(ctx)
		Eventually(says(ctx, c, v1alpha1.ConditionBound)).Should(Equal("False InvalidSelector: spec.serverSelector: it has 65 requirements in " +
			"matchLabels and matchExpressions, and at most 64 are judged; give the servers that are meant one label, and select by that"))
		Expect(says(ctx, c, v1alpha1.ConditionStalled)(Default)).To(HavePrefix("True InvalidSelector"))
		Expect(serverOf(ctx, c)(Default)).To(BeEmpty())
	})
})
