// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// A rack whose servers a claim can never have would be the emptiest for ever, and every other be too full.
func TestARackThatNothingCanEverGoToHoldsNoClaimBack(t *testing.T) {
	tainted := func(s *v1alpha1.Server) {
		s.Spec.Taints = []v1alpha1.Taint{{Key: "dedicated", Effect: v1alpha1.TaintEffectNoBind}}
	}
	critical := func(s *v1alpha1.Server) {
		s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionHealthy, Reason: v1alpha1.ReasonHealthCritical}}
	}
	tenancy := func(allow string) Policy {
		p, found := selection.Compile(map[string][]byte{"selection.rego": []byte("package metalaw.selection\nallow := true\n" +
			"reject contains {\"code\": \"other-tenant\", \"message\": \"kept for another\"} if " + allow)})
		if p == nil {
			t.Fatal(found)
		}
		return p
	}
	for name, tc := range map[string]struct {
		policy Policy
		third  func(*v1alpha1.Server)
		bound  int
	}{
		"its servers have a taint":                                   {nil, tainted, 4},
		"its servers are another tenant's":                           {tenancy(`object.get(input.candidate.labels, "tenant", input.claim.namespace) != input.claim.namespace`), labelled("tenant", "x"), 4},
		"the policy is interpreted":                                  {tenancy(`count([1 | input.candidate.labels.tenant == "x"]) > 0`), labelled("tenant", "x"), 4},
		"the policy is interpreted, and may allow them another time": {tenancy(`count([1 | input.candidate.health == "Critical"]) > 0`), critical, 2},
		"the policy may allow them another time":                     {tenancy(`input.candidate.health == "Critical"`), critical, 2},
		"nobody knows what the policy says there":                    {tenancy(`to_number(object.get(input.candidate.labels, "tenant", "1")) == 2`), labelled("tenant", "x"), 2},
		"the policy fails for a server elsewhere": {tenancy(`to_number(object.get(input.candidate.labels, "weight", "1")) + count(object.get(input.candidate.labels, "tenant", "")) > 1`),
			labelled("tenant", "x"), 3},
		"its servers will be clean": {nil, inState("Cleanup"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.policy != nil {
				w.s.policy = func() (Policy, engine.Revision) { return tc.policy, engine.Revision{Name: "another"} }
			}
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

// BenchmarkPlaces finds the places of a spread anew, as it is done each time that the fleet has changed.
func BenchmarkPlaces(b *testing.B) {
	shipped, err := policies.Default()
	if err != nil {
		b.Fatal(err)
	}
	const servers = 10000
	f := index.New()
	for i := range servers {
		f.Saw(rackServer(i))
	}
	a := askedBy(aClaim("c", placed("spread: {key: rack, claims: {matchLabels: {app: web}}}")))
	refuses, found := selection.Compile(map[string][]byte{"selection.rego": []byte("package metalaw.selection\nallow := true\n" +
		"reject contains {\"code\": \"no\", \"message\": \"no\"} if count([1 | regex.match(`[1-9]$`, input.candidate.rack)]) > 0")}) // nine of ten
	if refuses == nil || refuses.IsNative() {
		b.Fatal(found)
	}
	for _, policy := range []struct {
		name   string
		policy Policy
	}{{"none", byName{}}, {"native", shipped.Selection}, {"refuses", refuses}} {
		b.Run("servers=10000/policy="+policy.name, func(b *testing.B) {
			b.ReportAllocs()
			v := newView(f, policy.policy, engine.Revision{})
			for b.Loop() {
				clear(v.places)
				if len(v.placesOf(b.Context(), a)) == 0 {
					b.Fatal("there is no place")
				}
			}
		})
	}
}
