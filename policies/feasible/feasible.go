// SPDX-License-Identifier: Apache-2.0

// Package feasible says whether a claim could ever be satisfied by the fleet: by the servers that there are, in whatever
// state they are. It asks what the scheduler asks, in the same codes, without what passes by itself: another claim, state,
// power, data that is to be wiped, cordons and maintenance. It does no I/O and names no server.
package feasible

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// Asked is what a claim asks for.
type Asked struct {
	Spec      selection.ClaimSpec
	Claim     selection.Claim
	Placement *placement.Placement
}

// Of reads what a claim asks for. The error says what of it has no meaning.
func Of(c *v1alpha1.ServerClaim, granted bundle.Priority) (Asked, error) {
	spec, err := policies.ClaimSpecOf(c)
	if err != nil {
		return Asked{}, err
	}
	place, found := policies.PlacementOf(c)
	if err := found.Err(); err != nil {
		return Asked{}, err
	}
	claim := policies.SelectionClaimOf(c)
	claim.Priority = granted.Grant(c.Namespace, claim.Priority)
	return Asked{spec, claim, place}, nil
}

// Key is the same for claims that ask for the same, as far as a policy can tell them apart.
func (a Asked) Key(policy *selection.Policy) string {
	spec, err := json.Marshal(a.Spec) // which sorts the keys of maps
	if err != nil {
		panic(err) // strings and lists of them can be written
	}
	key := string(spec) + "\x00" + a.Placement.Asks()
	if policy != nil {
		key += "\x00" + policy.Asks(a.Claim)
	}
	return key
}

// Policy is the part of a bundle that turns servers away; *selection.Policy is one.
type Policy interface {
	// Rank looks at candidates. An error means that nothing is known.
	Rank(ctx context.Context, claim selection.Claim, candidates []*selection.PreparedCandidate, fleet selection.Fleet,
		most int) (selection.Result, error)
	// JudgesPassing says whether of what it turns away today it may allow some tomorrow, and Attainable which. A CandidateError
	// means that of some nobody knows.
	JudgesPassing() bool
	Attainable(ctx context.Context, claim selection.Claim, candidates []*selection.PreparedCandidate, fleet selection.Fleet) (
		[]*selection.PreparedCandidate, error)
}

// Answer is what the fleet has for a claim.
type Answer struct {
	// Total is the number of servers. Gang is how many the claim's gang takes; 0 where it has none. What the other members ask for
	// is theirs, so that one server for this claim is all that it needs itself.
	Total, Gang int
	// Matching is how many of the servers it asks for by name and labels.
	Matching int
	// Fit is how many could satisfy it, at least: nobody looks on once there is one.
	Fit int
	// ByCode counts the others, where there is none. A server that a policy rejects for two reasons counts twice.
	ByCode map[string]int
	// Passing: some server was turned away only by what follows counts, time, or how a server is at the moment, or of some of them
	// nobody knows yet what they are. It may pass by itself.
	Passing bool
	// Unjudged: the policy cannot be evaluated for some server, so that nobody knows whether that one could satisfy it.
	Unjudged bool
}

// Feasible says that there is a server for the claim.
func (a Answer) Feasible() bool { return a.Fit > 0 }

// TooFew says that the fleet has fewer servers than the claim's gang takes, whatever its members ask for.
func (a Answer) TooFew() bool { return a.Gang > a.Total }

// String is like "0 of 40 servers: selector 38, taint 2", the most frequent code first.
func (a Answer) String() string {
	text := fmt.Sprintf("%d of %d servers", a.Fit, a.Total)
	codes := slices.SortedFunc(maps.Keys(a.ByCode), func(x, y string) int {
		return cmp.Or(cmp.Compare(a.ByCode[y], a.ByCode[x]), cmp.Compare(x, y))
	})
	between := ": "
	for _, code := range codes {
		text += fmt.Sprintf("%s%s %d", between, code, a.ByCode[code])
		between = ", "
	}
	return text
}

// firstChunk is how many servers are looked at first. Most claims can be had from the first few, and need no more. largestChunk is how
// many are looked at from one look at the context to the next.
const (
	firstChunk   = 64
	largestChunk = 1024
)

// Judge looks at the fleet until it has found enough servers, or has seen all. The policy may be nil. An error means that
// nothing is known.
func Judge(ctx context.Context, fleet *index.Index, policy Policy, asked Asked, now int64) (Answer, error) {
	j := &judging{Asked: asked, policy: policy, answer: Answer{Total: fleet.Len(), ByCode: map[string]int{}}}
	if gang := asked.Placement.Gang(); gang != nil {
		j.answer.Gang = int(gang.Size)
	}
	if policy != nil {
		j.counts = fleet.CountsFor(asked.Claim.Namespace, now)
	}
	matching, err := fleet.MatchingWithin(ctx, asked.Spec)
	if err != nil {
		return Answer{}, err
	}
	others := selection.CodeSelector
	if asked.Spec.ServerRef != "" {
		others = selection.CodeServerRef
	}
	j.answer.Matching = len(matching)
	j.reject(others, j.answer.Total-len(matching))
	for size := firstChunk; len(matching) > 0 && !j.answer.Feasible(); size = min(4*size, largestChunk) {
		n := min(size, len(matching))
		if err := j.look(ctx, matching[:n]); err != nil {
			return Answer{}, err
		}
		matching = matching[n:]
	}
	if !j.answer.Feasible() {
		labelled, err := maybeLabelled(ctx, fleet, asked.Spec)
		if err != nil {
			return Answer{}, err
		}
		j.answer.Passing, j.answer.Unjudged = j.passing || j.unknown || labelled, j.unjudged
	}
	return j.answer, nil
}

// maybeLabelled says that a server of which nobody knows yet what it is could bear the labels of the inventory that a claim selects.
func maybeLabelled(ctx context.Context, fleet *index.Index, spec selection.ClaimSpec) (bool, error) {
	others, asks := policies.WithoutInventory(spec.Selector)
	if !asks || spec.ServerRef != "" {
		return false, nil
	}
	spec.Selector = others
	everyone, err := fleet.MatchingWithin(ctx, index.Everything)
	return slices.ContainsFunc(everyone, func(e *index.Entry) bool {
		if e.IsKnown() {
			return false // as nearly all are
		}
		ok, _, _ := selection.Feasible(spec, e.State)
		return ok
	}), err
}

// judging is one claim under way.
type judging struct {
	Asked
	policy Policy
	counts selection.Fleet
	answer Answer
	// passing says that one that the hard contract lets the claim have is turned away only by what passes by itself; unknown that of
	// one of these nobody knows yet what it is; unjudged that of one nobody knows what the policy would say.
	passing, unknown, unjudged bool
	candidates                 []*selection.PreparedCandidate
	// room is where the candidates of each look are put.
	room []*selection.PreparedCandidate
}

func (j *judging) reject(code string, n int) {
	if n > 0 {
		j.answer.ByCode[code] += n
	}
}

// look counts some more servers.
func (j *judging) look(ctx context.Context, entries []*index.Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.room = slices.Grow(j.room[:0], len(entries))
	j.candidates = j.room
	tolerates := selection.ClaimSpec{Tolerations: j.Spec.Tolerations} // the rest of it is what they match already
	for _, e := range entries {
		if ok, code, _ := selection.Feasible(tolerates, e.State); !ok {
			j.reject(code, 1)
			continue
		}
		j.candidates = append(j.candidates, e.Candidate())
		j.unknown = j.unknown || !e.IsKnown()
	}
	had := j.candidates
	j.place()
	if j.policy == nil {
		j.answer.Fit += len(j.candidates)
		j.passing = j.passing || len(had) > len(j.candidates) && j.Placement.JudgesPassing()
		return nil
	}
	if len(j.candidates) > 0 {
		result, err := j.policy.Rank(ctx, j.Claim, j.candidates, j.counts, 0)
		if err != nil {
			return err
		}
		j.answer.Fit += result.Allowed
		for code, r := range result.Rejections {
			j.reject(code, r.Count)
		}
		j.reject(selection.CodePolicyError, result.Unjudged.Count)
		j.unjudged = j.unjudged || result.Unjudged.Count > 0
	}
	return j.pass(ctx, had)
}

// pass finds out whether what turned servers away may pass by itself. Those that the placement does not accept count where it may
// accept them another time.
func (j *judging) pass(ctx context.Context, had []*selection.PreparedCandidate) error {
	some := j.candidates
	switch {
	case j.passing || j.answer.Feasible():
		return nil
	case len(had) > len(some) && j.Placement.JudgesPassing():
		some = had
	case !j.policy.JudgesPassing():
		return nil
	}
	could, err := j.policy.Attainable(ctx, j.Claim, some, j.counts)
	j.passing = len(could) > 0
	var one selection.CandidateError
	if errors.As(err, &one) {
		j.unjudged, err = true, nil
	}
	return err
}

// place leaves out the candidates that the placement does not accept, whatever stands where.
func (j *judging) place() {
	if j.Placement == nil || len(j.candidates) == 0 {
		return
	}
	at := func(i int) *selection.Candidate { return j.candidates[i].Facts() }
	sorted := j.Placement.Sort(len(j.candidates), at, nil)
	for code, r := range sorted.Rejections {
		j.reject(code, r.Count)
	}
	var accepted []*selection.PreparedCandidate
	for _, group := range sorted.Groups {
		for _, i := range group {
			accepted = append(accepted, j.candidates[i])
		}
	}
	j.candidates = accepted
}

// Words says what a claim that is not feasible would wait for.
func (a Answer) Words() string {
	if a.Feasible() {
		return fmt.Sprintf("the claim's gang takes %d servers, and the whole fleet has %d", a.Gang, a.Total)
	}
	return fmt.Sprintf("no server of the fleet, in whatever state, can satisfy the claim: %s", a)
}
