// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"testing"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// holding is a store in which one bundle is in force, held or not.
type holding struct {
	bundle *bundle.Bundle
	held   bool
}

func (h holding) Active() *bundle.Bundle { return h.bundle }

func (h holding) Held(name string) (string, bool) {
	return "a scenario fails", h.held && name == h.bundle.Revision.Name
}

func TestNothingIsBoundUnderARevisionThatIsHeld(t *testing.T) {
	shipped, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	if policy, revision := inForce(holding{shipped, true})(); policy != nil || revision.Name != shipped.Revision.Name {
		t.Errorf("policy %v of %s", policy, revision.Name)
	}
	if policy, _ := inForce(holding{shipped, false})(); policy == nil {
		t.Error("there is no policy under a revision that is not held")
	}
	inIts := *shipped // just before that is mended, as is asked whether it is held just after
	inIts.StandsIn = true
	if policy, _ := inForce(holding{&inIts, false})(); policy != nil {
		t.Error("what stands in for a revision that cannot be compiled chooses servers")
	}
}

// A claim that is stored while no webhook answers is held to the rules and to the quota by these two alone.
func TestTheSchedulerReadsRulesAndQuotaOutOfTheBundleInForce(t *testing.T) {
	shipped, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	inForce := *shipped
	inForce.Settings.Claims.Quota = bundle.Quota{Namespaces: map[string]int{"ns": 3}}
	for name, c := range map[string]struct {
		bundle *bundle.Bundle
		asks   engine.Revision
		said   string
		limit  int
	}{
		"of the bundle in force": {bundle: &inForce, asks: inForce.Revision, limit: 3,
			said: "ClaimDenied: policy " + inForce.Revision.Name + " forbids the claim: spec.image: a claim needs an image to boot; name one in spec.image [image-missing]"},
		"under another bundle than that which chooses": {bundle: &inForce, asks: engine.Revision{Name: "former"}, limit: 3,
			said: "GuardError: policy former could not decide whether there may be such a claim: another policy came into force meanwhile; " +
				"the claim is looked at again under that one"},
		"without a bundle": {asks: inForce.Revision, limit: -1,
			said: "GuardError: policy " + inForce.Revision.Name + " could not decide whether there may be such a claim: another policy came into force meanwhile; " +
				"the claim is looked at again under that one"},
	} {
		t.Run(name, func(t *testing.T) {
			reason, words := policies.Forbids(t.Context(), rulesOf(holding{c.bundle, false})(c.asks), c.asks.Name, aClaim("c", imageOf("")))
			if got := reason + ": " + words; got != c.said {
				t.Errorf("got  %s\nwant %s", got, c.said)
			}
			limit, bounded := claimsOf(holding{c.bundle, false})().Quota.Limit("ns")
			if !bounded {
				limit = -1
			}
			if limit != c.limit {
				t.Errorf("the namespace may have %d servers, want %d", limit, c.limit)
			}
		})
	}
}
