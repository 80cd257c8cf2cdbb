// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

var _ = Describe("Claims with a placement", Ordered, func() {
	var p place
	BeforeEach(func(ctx context.Context) { p = newPlace(ctx) })

	placing := func(text string) func(*v1alpha1.ServerClaim) {
		return func(c *v1alpha1.ServerClaim) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.PlacementAnnotation, text)
		}
	}
	inRack := func(rack string) func(*v1alpha1.Server) {
		return func(s *v1alpha1.Server) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, policies.RackMetadata, rack) }
	}
	gang := func(ctx context.Context, change ...func(*v1alpha1.ServerClaim)) []*v1alpha1.ServerClaim {
		GinkgoHelper()
		members := make([]*v1alpha1.ServerClaim, 3)
		for i := range members {
			members[i] = p.claim(ctx, fmt.Sprintf("db-%d", i), append(change, placing("gang: {name: db, size: 3}"))...)
		}
		return members
	}
	serversOf := func(ctx context.Context, claims []*v1alpha1.ServerClaim) func(Gomega) []string {
		return func(g Gomega) (names []string) {
			for _, c := range claims {
				names = append(names, serverOf(ctx, c)(g))
			}
			return names
		}
	}
	isFree := func(ctx context.Context, s *v1alpha1.Server) func(Gomega) bool {
		return func(Gomega) bool { return live(ctx, s).Spec.ServerClaimRef == nil }
	}

	It("of one gang are bound together", func(ctx SpecContext) {
		runClaims(ctx)
		a, b, c := p.server(ctx, "a"), p.server(ctx, "b"), p.server(ctx, "c")
		Eventually(serversOf(ctx, gang(ctx))).Should(ConsistOf(a.Name, b.Name, c.Name))
	})

	It("of one gang get nothing while a server is missing, and all once it comes up", func(ctx SpecContext) {
		runClaims(ctx)
		a, b := p.server(ctx, "a"), p.server(ctx, "b")
		members := gang(ctx)
		Eventually(says(ctx, members[0], v1alpha1.ConditionBound)).Should(HavePrefix(
			`False GangWaiting: gang "db": servers for 2 of its 3 members can be had now, 1 short; 2 of `))
		Consistently(serversOf(ctx, members)).Should(HaveEach(BeEmpty()))
		Expect(isFree(ctx, a)(Default) && isFree(ctx, b)(Default)).To(BeTrue())
		c := p.server(ctx, "c")
		Eventually(serversOf(ctx, members)).Should(ConsistOf(a.Name, b.Name, c.Name))
	})

	It("of a gang that a manager left reserved in part are completed by the next", func(ctx SpecContext) {
		members := gang(ctx, withFinalizer)
		a := p.server(ctx, "a", writtenFor(p.namespace, "db-1", string(members[1].UID)))
		b, c := p.server(ctx, "b"), p.server(ctx, "c")
		runClaims(ctx)
		Eventually(serversOf(ctx, members)).Should(And(ConsistOf(a.Name, b.Name, c.Name), HaveExactElements(b.Name, a.Name, c.Name)))
	})

	It("of a gang that a manager left reserved in part lose the reservations where a server is missing, and name none", func(ctx SpecContext) {
		members := gang(ctx, withFinalizer)
		a := p.server(ctx, "a", writtenFor(p.namespace, "db-1", string(members[1].UID)))
		b := p.server(ctx, "b", writtenFor(p.namespace, "db-2", string(members[2].UID)))
		runClaims(ctx)
		Eventually(isFree(ctx, a)).Should(BeTrue())
		Eventually(isFree(ctx, b)).Should(BeTrue())
		Expect(live(ctx, a).Annotations).NotTo(HaveKey(v1alpha1.ClaimUIDAnnotation))
		Expect(serversOf(ctx, members)(Default)).To(HaveEach(BeEmpty()))
		p.server(ctx, "c")
		Eventually(serversOf(ctx, members)).ShouldNot(ContainElement(BeEmpty()))
	})

	It("of a gang are bound all or none, however often the manager is killed between the writes", func(ctx SpecContext) {
		for i := range 3 {
			p.server(ctx, fmt.Sprintf("s%d", i))
		}
		for range 3 {
			stop := runClaims(ctx)
			members := gang(ctx)
			Eventually(func(Gomega) bool { // until the first of them is written
				for i := range 3 {
					s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-s%d", p.pool, i)}}
					if !isFree(ctx, s)(Default) {
						return true
					}
				}
				return false
			}).WithPolling(1).Should(BeTrue())
			stop()
			stop = runClaims(ctx)
			Eventually(serversOf(ctx, members)).ShouldNot(ContainElement(BeEmpty()))
			for _, c := range members {
				Expect(admin.Delete(ctx, c)).To(Succeed())
			}
			for _, c := range members {
				goneAtOnce(ctx, c)
			}
			stop()
		}
	})

	It("get a server that where accepts, as soon as there is one", func(ctx SpecContext) {
		runClaims(ctx)
		other := p.server(ctx, "a", inRack("r1"))
		c := p.claim(ctx, "claim", placing(`where: server.rack == "r2"`))
		Eventually(says(ctx, c, v1alpha1.ConditionBound)).Should(MatchRegexp(`^False NoneClaimable: 1 of \d+ servers match: placement 1$`))
		right := p.server(ctx, "b", inRack("r2"))
		Eventually(serverOf(ctx, c)).Should(Equal(right.Name))
		Expect(isFree(ctx, other)(Default)).To(BeTrue())
	})

	It("are spread over racks, and wait rather than crowd", func(ctx SpecContext) {
		runClaims(ctx)
		p.server(ctx, "a", inRack("r1"))
		p.server(ctx, "b", inRack("r1"))
		p.server(ctx, "c", inRack("r2"))
		spread := placing("spread: {key: rack, claims: {}}")
		first, second, third := p.claim(ctx, "first", spread), p.claim(ctx, "second", spread), p.claim(ctx, "third", spread)
		claims := []*v1alpha1.ServerClaim{first, second, third}
		Eventually(serversOf(ctx, claims)).ShouldNot(ContainElement(BeEmpty()))
		fourth := p.claim(ctx, "fourth", spread)
		p.server(ctx, "d", inRack("r1"))
		Eventually(says(ctx, fourth, v1alpha1.ConditionBound)).Should(ContainSubstring("spread 1"))
		e := p.server(ctx, "e", inRack("r2"))
		Eventually(serverOf(ctx, fourth)).Should(Equal(e.Name))
	})
})
