// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/scheduler/index"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// view is what the decisions of one pass are made from. What the policy chose for one claim is kept for those that ask for the
// same. One goroutine at a time uses it.
type view struct {
	fleet    *index.Index
	policy   Policy
	revision engine.Revision
	granted  bundle.Priority
	now      int64

	choices map[string]*choice
	// exhausted are the classes for which no server is left.
	exhausted map[string]bool
	// fit and candidates are lists to use again.
	fit        []*index.Entry
	candidates []*selection.PreparedCandidate
}

// choice is what a policy made of the servers that a class of claims can have.
type choice struct {
	ranked   []selection.Ranked
	rejected map[string]int
	// head is how many of the first are known to be taken.
	head int
	// sequence is what was known of the servers; counted what was known of the fleet's counts, where follows says that they matter.
	sequence, counted uint64
	follows           bool
}

func newView(fleet *index.Index, policy Policy, revision engine.Revision) *view {
	return &view{fleet: fleet, policy: policy, revision: revision, choices: map[string]*choice{}, exhausted: map[string]bool{}}
}

// decide says what to do for an open claim. It writes nothing and does no I/O. Where afresh is set, the policy is asked though it
// was asked for the same before: what it chose then is used up, or has changed.
func (v *view) decide(ctx context.Context, a asking, afresh bool) step {
	if s, done := v.written(a.claim); done {
		return s
	}
	if a.wrong != nil {
		return refusal(v1alpha1.ReasonInvalidSelector, a.wrong.Error())
	}
	if a.spec.ServerRef != "" && v.fleet.Get(a.spec.ServerRef) == nil {
		return refusal(v1alpha1.ReasonServerNotFound,
			"the server that spec.serverRef names does not exist; serverRef cannot be changed, so create the server or claim anew")
	}
	if v.exhausted[a.class.key] {
		return step{action: refuse, count: true, spec: a.spec}
	}
	claim := policies.SelectionClaimOf(a.claim)
	claim.Priority = a.priority
	t, ok := v.policy.(telling)
	if !ok {
		return v.choose(ctx, a, claim, "", true)
	}
	key := a.class.key + "\x00" + t.Asks(claim)
	c := v.choices[key]
	if afresh || c == nil || c.follows && c.counted != v.fleet.Version() {
		return v.choose(ctx, a, claim, key, t.FollowsFleet())
	}
	return v.offer(a, c, true)
}

// choose asks the policy, and keeps what it chose under a key, if there is one.
func (v *view) choose(ctx context.Context, a asking, claim selection.Claim, key string, follows bool) step {
	c := &choice{sequence: v.fleet.Sequence(), counted: v.fleet.Version(), follows: follows}
	v.fit = v.fleet.AppendEligible(v.fit[:0], a.spec)
	if len(v.fit) == 0 {
		v.exhausted[a.class.key] = true
		return step{action: refuse, count: true, spec: a.spec}
	}
	if v.policy == nil {
		return refusal(v1alpha1.ReasonPending, "no policy is in force, or this version of the manager refuses the one that is")
	}
	v.candidates = v.candidates[:0]
	for _, e := range v.fit {
		v.candidates = append(v.candidates, e.Candidate())
	}
	evaluations.Inc()
	result, err := v.policy.Select(ctx, claim, v.candidates, v.fleet.Counts(v.now))
	if err != nil {
		s := refusal(v1alpha1.ReasonGuardError, withoutNames(err.Error(), v.fit))
		s.follows = true
		return s
	}
	c.ranked, c.rejected = result.Ranked, map[string]int{}
	for code, r := range result.Rejections {
		c.rejected[code] = r.Count
	}
	if key != "" {
		v.choices[key] = c
	}
	return v.offer(a, c, false)
}

// offer is the step that a choice leads to.
func (v *view) offer(a asking, c *choice, shared bool) step {
	if len(c.ranked) == 0 {
		return step{action: refuse, count: true, spec: a.spec, rejected: c.rejected, follows: c.follows}
	}
	for c.head < len(c.ranked) && v.fleet.Free(c.ranked[c.head].Name, a.spec) == nil {
		c.head++
	}
	return step{action: bind, choice: c, shared: shared, revision: v.revision, spec: a.spec}
}
