// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"testing"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// A rack whose servers a claim can never have would be the emptiest for ever, and every other be too full.
func TestARackThatNothingCanEverGoToHoldsNoClaimBack(t *testing.T) {
	tainted := func(s *v1alpha1.Server) {
		s.Spec.Taints = []v1alpha1.Taint{{Key: "dedicated", Effect: v1alpha1.TaintEffectNoBind}}
	}
	for name, tc := range map[string]struct {
		third func(*v1alpha1.Server)
		bound int
	}{
		"its servers have a taint":  {tainted, 4},
		"its servers will be clean": {inState("Cleanup"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for i := range 6 {
				s := aServer(fmt.Sprint("s", i), labelled(policies.RackMetadata, fmt.Sprint("r", i%3)))
				if i%3 == 2 {
					tc.third(s)
				}
				if i == 0 {
					labelled("weight", "heavy")(s) // which one of the policies cannot read
				}
				w.addServer(s)
			}
			for i := range 4 {
				w.addClaim(aClaim(fmt.Sprint("c", i), claimLabelled("app", "web"), placed("spread: {key: rack, claims: {matchLabels: {app: web}}}")))
			}
			w.settle()
			bound := 0
			for _, c := range w.claims() {
				if c.Spec.ServerRef != nil {
					bound++
				}
			}
			if bound != tc.bound {
				v, _ := w.s.Verdict("uid-c3")
				t.Errorf("%d are bound, want %d: %s", bound, tc.bound, v.Message)
			}
		})
	}
}
