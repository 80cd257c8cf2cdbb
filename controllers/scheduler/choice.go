// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// view is what the decisions of one pass are made from. What the policy chose for one claim is kept for those that ask for the
// same. One goroutine at a time uses it.
type view struct {
	fleet    *index.Index
	policy   Policy
	revision engine.Revision
	granted  bundle.Priority
	// quota bounds the servers of a namespace; underway is how many are being written for claims of one, nil for none.
	quota    bundle.Quota
	underway func(namespace string) int
	now      int64
	// kept says whether a server is kept free for a gang; nil for none.
	kept func(server string) bool
	// writing says whether any server is being written; nil for none.
	writing func() bool
	// patience knows which servers were tried for a claim in vain.
	patience patience
	// neighbours are the claims of a namespace; nil where none are known.
	neighbours func(namespace string) []*neighbour

	choices map[string]*choice
	// exhausted are the classes for which no server is left.
	exhausted map[string]bool
	// rules forbid claims; nil for none. stood is what they said so far.
	rules policies.Rules
	stood standing
	// together are the members of the gang that is being served: what is assumed for one of them stands or falls with the others.
	together map[types.UID]bool
	// places are the counts of each class that is spread before any claim is counted.
	places map[string]places
	// matching are the servers that claims ask for by name and labels, in whatever state.
	matching map[string]listed
	// fits are the candidates of each hard contract that was asked for; taken are the servers that were given away since the pass began.
	fits  map[string]*fits
	taken []uint32
	// judgements are what placements say of servers.
	judgements *judgements
	attained   *attainments
	// failed is told of servers that the policy fails for, and whether it failed for all that it was asked about; nil where nobody is.
	failed func(context.Context, []selection.CandidateError, bool)
	// groups are what the policy is asked about, kept for the next time.
	groups [][]*selection.PreparedCandidate
}

// fits are the servers that claims can have by the hard contract, as candidates too.
type fits struct {
	entries    []*index.Entry
	candidates []*selection.PreparedCandidate
	// offered is what the index said then; seen is how many of the taken are left out.
	offered uint64
	seen    int
}

// choice is what a policy made of the servers that a class of claims can have.
type choice struct {
	ranked []selection.Ranked
	// allowed is how many servers the policy allows; ranked may be fewer.
	allowed int
	// rejected counts by the codes of the policy, misplaced by those of the claim's placement.
	rejected, misplaced map[string]int
	// failed is why nothing is known of them; empty where something is. unjudged counts those of which nothing is known, and unknown
	// is why.
	failed, unknown string
	unjudged        int
	// head is how many of the first are known to be taken.
	head int
	// sequence is what was known of the servers; counted what was known of the fleet's counts, where follows says that they matter.
	sequence, counted uint64
	follows           bool
	// spread says that the counts of the claim's spread matter as well; contended that it may come to allow servers which it does not
	// allow for sure.
	spread, contended bool
}

func newView(fleet *index.Index, policy Policy, revision engine.Revision) *view {
	return &view{fleet: fleet, policy: policy, revision: revision, choices: map[string]*choice{},
		exhausted: map[string]bool{}, fits: map[string]*fits{}, places: map[string]places{},
		matching: map[string]listed{}, judgements: newJudgements(), attained: &attainments{}}
}

// decide says what to do for an open claim. It writes nothing and does no I/O. Where afresh is set, the policy is asked though it
// was asked for the same before: what it chose then is used up, or has changed.
func (v *view) decide(ctx context.Context, a asking, afresh bool) step {
	if s, done := v.written(a.claim); done && (s.action != complete || a.unplaced == "") {
		return s
	}
	return v.pick(ctx, a, afresh)
}

// pick says which servers a claim can have for which none is written.
func (v *view) pick(ctx context.Context, a asking, afresh bool) step {
	if a.unplaced != "" {
		return refusal(v1alpha1.ReasonInvalidPlacement, a.unplaced)
	}
	if a.wrong != nil {
		return refusal(v1alpha1.ReasonInvalidSelector, a.wrong.Error())
	}
	if s, is := v.forbidden(ctx, a.claim); is {
		return s
	}
	if a.spec.ServerRef != "" && v.fleet.Get(a.spec.ServerRef) == nil {
		return refusal(v1alpha1.ReasonServerNotFound,
			"the server that spec.serverRef names does not exist; the claim gets it once it does; "+
				"serverRef cannot be changed: if the name is wrong, delete the claim and create another")
	}
	if s, over := v.exceeds(a.claim.Namespace, 1); over {
		return s
	}
	if v.exhausted[a.class.key] {
		return v.none(a)
	}
	claim := policies.SelectionClaimOf(a.claim)
	claim.Priority = a.priority
	t, ok := v.policy.(telling)
	if !ok {
		return v.choose(ctx, a, claim, "", true)
	}
	key := a.class.key + "\x00" + t.Asks(claim)
	c := v.choices[key]
	if afresh || c == nil || (c.follows || c.spread) && c.counted != v.fleet.Version() {
		return v.choose(ctx, a, claim, key, t.FollowsFleet())
	}
	return v.offer(a, c, true)
}

// exceeds refuses claims whose namespace has no room for so many servers more. Admission counts claims and knows only of its own
// process what it admitted a moment ago; here nothing slips through.
func (v *view) exceeds(namespace string, more int) (step, bool) {
	if _, bounded := v.quota.Limit(namespace); !bounded {
		return step{}, false
	}
	held := v.fleet.HeldIn(namespace)
	if v.underway != nil {
		held.Servers += v.underway(namespace)
	}
	words := claims.QuotaExceeded(v.quota, namespace, held, more)
	if words == "" {
		return step{}, false
	}
	s := refusal(v1alpha1.ReasonQuotaExceeded, words)
	s.follows = true
	return s, true
}

// choose asks the policy, and keeps what it chose under a key, if there is one.
func (v *view) choose(ctx context.Context, a asking, claim selection.Claim, key string, follows bool) step {
	c := &choice{sequence: v.fleet.Sequence(), counted: v.fleet.Version(), follows: follows, spread: a.placed.Spread() != nil}
	fit := v.fit(a)
	if len(fit.entries) == 0 {
		v.exhausted[a.class.key] = true
		return v.none(a)
	}
	if v.policy == nil {
		s := refusal(v1alpha1.ReasonPending, "no policy is in force, or this version of the manager refuses the one that is")
		s.follows = true
		return s
	}
	if some := v.untried(a.claim, fit); some != nil {
		own := *c // the others of its class did not try these
		v.rank(ctx, a, claim, some, &own)
		if len(own.ranked) > 0 {
			return v.offer(a, &own, false)
		}
	}
	v.rank(ctx, a, claim, fit, c)
	if key != "" {
		v.choices[key] = c
	}
	return v.offer(a, c, false)
}

// fit finds the servers that a claim can have. As long as none came up since they were found for one that asks for the same, those that were given
// away meanwhile are left out of them.
func (v *view) fit(a asking) *fits {
	offered := v.fleet.Offered()
	f := v.fits[a.class.asked]
	if f == nil || f.offered != offered {
		f = &fits{entries: v.fleet.Eligible(a.spec), offered: offered}
		f.candidates = make([]*selection.PreparedCandidate, len(f.entries))
		for i, e := range f.entries {
			f.candidates[i] = e.Candidate()
		}
		v.fits[a.class.asked] = f
	} else if gone := v.taken[f.seen:]; len(gone) > 0 {
		f.leaveOut(gone)
	}
	f.seen = len(v.taken)
	return f
}

// untried are those servers that were not tried for a claim in vain; nil where these are all, or none. They are left out before the
// policy ranks them, because a ranking ends after the best.
func (v *view) untried(c *v1alpha1.ServerClaim, all *fits) *fits {
	if !v.patience.hasTried(c.UID) {
		return nil
	}
	some := &fits{}
	for i, e := range all.entries {
		if !v.patience.spent(c, e) {
			some.entries, some.candidates = append(some.entries, e), append(some.candidates, all.candidates[i])
		}
	}
	if len(some.entries) == 0 || len(some.entries) == len(all.entries) {
		return nil
	}
	return some
}

// leaveOut takes servers out of the candidates.
func (f *fits) leaveOut(numbers []uint32) {
	isGone := func(n uint32) bool { return slices.Contains(numbers, n) }
	if len(numbers) > 8 {
		set := make(map[uint32]bool, len(numbers))
		for _, n := range numbers {
			set[n] = true
		}
		isGone = func(n uint32) bool { return set[n] }
	}
	kept := 0
	for i, e := range f.entries {
		if !isGone(e.Number()) {
			f.entries[kept], f.candidates[kept] = e, f.candidates[i]
			kept++
		}
	}
	f.entries, f.candidates = f.entries[:kept], f.candidates[:kept]
}

// none is the step of a claim that no server is left for.
func (v *view) none(a asking) step {
	return step{action: refuse, count: true, spec: a.spec, leftOut: v.leaving(a)}
}

// offer is the step that a choice leads to.
func (v *view) offer(a asking, c *choice, shared bool) step {
	if c.failed != "" {
		s := refusal(v1alpha1.ReasonGuardError, c.failed)
		s.follows = true
		return s
	}
	if len(c.ranked) == 0 {
		return step{action: refuse, count: true, spec: a.spec, rejected: c.rejected, misplaced: c.misplaced, unjudged: c.unjudged, unknown: c.unknown,
			follows: c.follows || c.contended}
	}
	for c.head < len(c.ranked) && v.fleet.Free(c.ranked[c.head].Name, a.spec) == nil {
		c.head++
	}
	return step{action: bind, choice: c, shared: shared, revision: v.revision, spec: a.spec}
}

// isStale says that the policy may choose otherwise by now: it follows the counts of the fleet, and others have changed them.
func (v *view) isStale(c *choice) bool {
	t, ok := v.policy.(telling)
	return ok && t.FollowsFleet() && c.counted != v.fleet.Version()
}

// afresh forgets what was chosen: servers came back that it took for gone.
func (v *view) afresh() {
	clear(v.choices)
	clear(v.exhausted)
}
