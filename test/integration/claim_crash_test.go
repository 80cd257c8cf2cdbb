// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// What a binding left unfinished, or made by somebody else, becomes when the manager starts.
var _ = Describe("A manager that starts", Ordered, func() {
	const nobody = "00000000-0000-0000-0000-000000000000"
	var p place
	BeforeEach(func(ctx context.Context) { p = newPlace(ctx) })

	start := func(ctx context.Context) {
		GinkgoHelper()
		DeferCleanup(runClaims(ctx))
	}
	reference := func(ctx context.Context, s *v1alpha1.Server) func(Gomega) *v1alpha1.ObjectReference {
		return func(g Gomega) *v1alpha1.ObjectReference {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
			return s.Spec.ServerClaimRef
		}
	}
	holder := func(ctx context.Context, s *v1alpha1.Server) func(Gomega) string {
		return func(g Gomega) string {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
			return s.Annotations[v1alpha1.ClaimUIDAnnotation]
		}
	}

	It("completes a binding that is written on the server alone, and gives the claim no second server", func(ctx context.Context) {
		c := p.claim(ctx, "claim", withFinalizer)
		s := p.server(ctx, "b", writtenFor(c.Namespace, c.Name, string(c.UID)), inState(v1alpha1.StateReserved))
		better := p.server(ctx, "a")
		start(ctx)
		Eventually(serverOf(ctx, c)).Should(Equal(s.Name))
		Consistently(reference(ctx, better)).Should(BeNil())
	})

	It("undoes a binding whose claim is gone, where the server never left Available", func(ctx context.Context) {
		s := p.server(ctx, "one", writtenFor(p.namespace, "gone", nobody))
		start(ctx)
		Eventually(reference(ctx, s)).Should(BeNil())
		Expect(s.Annotations).NotTo(HaveKey(v1alpha1.ClaimUIDAnnotation))
		c := p.claim(ctx, "claim")
		Eventually(serverOf(ctx, c)).Should(Equal(s.Name))
	})

	It("undoes a binding that was meant for an earlier claim of the name, and binds the present one anew", func(ctx context.Context) {
		s := p.server(ctx, "one", writtenFor(p.namespace, "claim", nobody))
		c := p.claim(ctx, "claim")
		start(ctx)
		Eventually(serverOf(ctx, c)).Should(Equal(s.Name))
		Expect(holder(ctx, s)(Default)).To(Equal(string(c.UID)))
	})

	It("leaves a binding whose claim is gone alone once the server has moved, or was not made by us", func(ctx context.Context) {
		moved := p.server(ctx, "moved", writtenFor(p.namespace, "gone", nobody), inState(v1alpha1.StateReserved))
		foreign := p.server(ctx, "foreign", writtenFor(p.namespace, "gone", ""))
		start(ctx)
		Consistently(reference(ctx, moved)).ShouldNot(BeNil())
		Expect(reference(ctx, foreign)(Default)).NotTo(BeNil())
		Expect(moved.Annotations).NotTo(HaveKey(v1alpha1.ReleasedClaimAnnotation))
	})

	It("adopts a binding made before us, and one of a claim that was restored", func(ctx context.Context) {
		before := p.server(ctx, "before", writtenFor(p.namespace, "before", ""), inState(v1alpha1.StateReserved))
		restored := p.server(ctx, "restored", writtenFor(p.namespace, "restored", nobody), inState(v1alpha1.StateReserved))
		cb := p.claim(ctx, "before", naming(before.Name))
		cr := p.claim(ctx, "restored", naming(restored.Name))
		start(ctx)
		Eventually(holder(ctx, before)).Should(Equal(string(cb.UID)))
		Eventually(holder(ctx, restored)).Should(Equal(string(cr.UID)))
	})

	It("does not adopt for a claim whose predecessor was released", func(ctx context.Context) {
		s := p.server(ctx, "one", writtenFor(p.namespace, "claim", nobody), inState(v1alpha1.StateReserved), func(s *v1alpha1.Server) {
			s.Annotations[v1alpha1.ReleasedClaimAnnotation] = nobody
		})
		c := p.claim(ctx, "claim", naming(s.Name))
		start(ctx)
		Eventually(says(ctx, c, v1alpha1.ConditionBound)).Should(HavePrefix("False ServerTaken"))
		Expect(holder(ctx, s)(Default)).To(Equal(nobody))
	})

	It("finds the server of a claim that was deleted while it was being bound", func(ctx context.Context) {
		untouched, moved := p.claim(ctx, "untouched", withFinalizer), p.claim(ctx, "moved", withFinalizer)
		Expect(admin.Delete(ctx, untouched)).To(Succeed())
		Expect(admin.Delete(ctx, moved)).To(Succeed())
		a := p.server(ctx, "a", writtenFor(p.namespace, "untouched", string(untouched.UID)))
		b := p.server(ctx, "b", writtenFor(p.namespace, "moved", string(moved.UID)), inState(v1alpha1.StateReserved))
		start(ctx)
		goneAtOnce(ctx, untouched)
		goneAtOnce(ctx, moved)
		Expect(reference(ctx, a)(Default)).To(BeNil())
		Expect(reference(ctx, b)(Default)).NotTo(BeNil())
		Expect(b.Annotations).To(HaveKeyWithValue(v1alpha1.ReleasedClaimAnnotation, string(moved.UID)))
	})

	It("never leaves a server to a claim that is deleted while many are bound", func(ctx context.Context) {
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			p.server(ctx, name)
		}
		start(ctx)
		for range 5 {
			claims := make([]*v1alpha1.ServerClaim, 6)
			for i := range claims {
				claims[i] = p.claim(ctx, string(rune('a'+i)))
			}
			for _, c := range claims {
				Expect(admin.Delete(ctx, c)).To(Succeed())
			}
			for _, c := range claims {
				goneAtOnce(ctx, c)
			}
		}
		var servers v1alpha1.ServerList
		Eventually(func(g Gomega) {
			g.Expect(admin.List(ctx, &servers, client.MatchingLabels{poolLabel: p.pool})).To(Succeed())
			for i := range servers.Items {
				g.Expect(servers.Items[i].Spec.ServerClaimRef).To(BeNil())
			}
		}).Should(Succeed())
	})
})
