// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/index"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

// Fit is what the fleet has for a claim: the servers that there are, in any state.
type Fit struct {
	// Total is the number of servers. Gang is how many the claim's gang takes; 0 where it has none. What the other members ask for
	// is theirs, so that one server for this claim is all that it needs itself.
	Total, Gang int
	// Matching is how many of the servers it asks for by name and labels.
	Matching int
	// Fit is how many could satisfy it, at least: the search ends at the first.
	Fit int
	// ByCode counts the others, where there is none. A server that a policy rejects for two reasons counts twice.
	ByCode map[string]int
	// Passing: some server was turned away only by what follows counts, time, or how a server is at the moment, or of some of them
	// it is not known yet what they are. It may pass by itself.
	Passing bool
	// Unjudged: the policy cannot be evaluated for some server, so that it is not known whether that one could satisfy
	// it.
	Unjudged bool
}

// Feasible says that there is a server for the claim.
func (a Fit) Feasible() bool { return a.Fit > 0 }

// TooFew says that the fleet has fewer servers than the claim's gang takes, also if its members ask for nothing else.
func (a Fit) TooFew() bool { return a.Gang > a.Total }

// String is like "0 of 40 servers: selector 38, taint 2", the most frequent code first.
func (a Fit) String() string {
	return countWords(fmt.Sprintf("%d of %d servers", a.Fit, a.Total), a.ByCode)
}

// firstChunk is how many servers are looked at first. Most claims can be had from the first few, and need no more. largestChunk is how
// many are looked at from one look at the context to the next.
const (
	firstChunk   = 64
	largestChunk = 1024
)

// fit looks at the fleet until it has found a server that could ever satisfy a claim, or has seen all. It asks what Best asks, in the
// same codes, without what passes by itself: another claim, state, power, data that is to be wiped, cordons and maintenance.
func (s *solver) fit(c *claims.Claim) Result {
	out := Result{Claim: c, Action: Refuse}
	if wrong := cmp.Or(c.Invalid, c.Unplaced); wrong != "" {
		out.Err = errors.New(wrong)
		return out
	}
	j := &fitting{Claim: c, answer: Fit{Total: s.Fleet.Len(), ByCode: map[string]int{}}}
	if gang := c.Gang(); gang != nil {
		j.answer.Gang = int(gang.Size)
	}
	if p, ok := s.Policy.(explainer); ok {
		j.policy, j.counts = p, s.Fleet.CountsFor(c.Namespace, s.Now)
	}
	if out.Err = j.all(s.ctx, s.Fleet); out.Err == nil {
		out.Fit = &j.answer
	}
	return out
}

// fitting is one claim under way.
type fitting struct {
	*claims.Claim
	policy explainer
	counts selection.Fleet
	answer Fit
	// passing says that one that the hard contract lets the claim have is turned away only by what passes by itself; unknown that of
	// one of which the hardware is not known yet; unjudged that of one for which the policy fails.
	passing, unknown, unjudged bool
	candidates                 []*selection.PreparedCandidate
	// room is where the candidates of each look are put.
	room []*selection.PreparedCandidate
}

// all looks at the servers that the claim asks for.
func (j *fitting) all(ctx context.Context, fleet *index.Index) error {
	matching, err := fleet.MatchingWithin(ctx, j.Spec)
	if err != nil {
		return err
	}
	others := selection.CodeSelector
	if j.Spec.ServerRef != "" {
		others = selection.CodeServerRef
	}
	j.answer.Matching = len(matching)
	j.reject(others, j.answer.Total-len(matching))
	for size := firstChunk; len(matching) > 0 && !j.answer.Feasible(); size = min(4*size, largestChunk) {
		n := min(size, len(matching))
		if err := j.look(ctx, matching[:n]); err != nil {
			return err
		}
		matching = matching[n:]
	}
	if j.answer.Feasible() {
		return nil
	}
	labelled, err := j.maybeLabelled(ctx, fleet)
	j.answer.Passing, j.answer.Unjudged = j.passing || j.unknown || labelled, j.unjudged
	return err
}

// maybeLabelled says that a server whose hardware is not known yet could bear the labels of the inventory that a claim
// selects.
func (j *fitting) maybeLabelled(ctx context.Context, fleet *index.Index) (bool, error) {
	if j.Beside == nil {
		return false, nil
	}
	everyone, err := fleet.MatchingWithin(ctx, index.Everything)
	return slices.ContainsFunc(everyone, func(e *index.Entry) bool {
		if e.Known {
			return false // as nearly all are
		}
		ok, _, _ := selection.Feasible(*j.Beside, e.State)
		return ok
	}), err
}

func (j *fitting) reject(code string, n int) {
	if n > 0 {
		j.answer.ByCode[code] += n
	}
}

// look counts some more servers.
func (j *fitting) look(ctx context.Context, entries []*index.Entry) error {
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
		j.unknown = j.unknown || !e.Known
	}
	had := j.candidates
	j.place()
	if j.policy == nil {
		j.answer.Fit += len(j.candidates)
		j.passing = j.passing || len(had) > len(j.candidates) && j.Placement.JudgesPassing()
		return nil
	}
	if len(j.candidates) > 0 {
		result, err := j.policy.Rank(ctx, j.Asked, j.candidates, j.counts, 0)
		if err != nil {
			return err
		}
		j.answer.Fit += result.Allowed
		for code, r := range result.Rejections {
			j.reject(code, r.Count)
		}
		j.reject(selection.CodePolicyError, result.Unjudged.Count)
		j.unjudged = j.unjudged || result.Unjudged.Count > 0
		j.passing = j.passing || result.Evaluated-result.Unjudged.Count-result.Allowed > result.Lasting
	}
	return j.pass(ctx, had)
}

// pass finds out whether what turned servers away may pass by itself. Those that the placement does not accept count where it may
// accept them another time, and the policy does not turn them away for good.
func (j *fitting) pass(ctx context.Context, had []*selection.PreparedCandidate) error {
	if j.passing || j.answer.Feasible() || len(had) == len(j.candidates) || !j.Placement.JudgesPassing() {
		return nil
	}
	result, err := j.policy.Rank(ctx, j.Asked, had, j.counts, 0)
	if err != nil {
		return err
	}
	j.passing, j.unjudged = result.Evaluated-result.Unjudged.Count > result.Lasting, j.unjudged || result.Unjudged.Count > 0
	return nil
}

// place leaves out the candidates that the placement does not accept, spread left aside.
func (j *fitting) place() {
	if j.Placement == nil {
		return
	}
	j.candidates = slices.DeleteFunc(slices.Clone(j.candidates), func(one *selection.PreparedCandidate) bool {
		code := j.Placement.Brief(one.Facts()).Code
		if spread := j.Placement.Spread(); code == "" && spread != nil && spread.Place(one.Facts()) == "" {
			code = placement.CodeSpread
		}
		if code != "" {
			j.reject(code, 1)
		}
		return code != ""
	})
}

// Words says what a claim that is not feasible would wait for.
func (a Fit) Words() string {
	if a.Feasible() {
		return fmt.Sprintf("the claim's gang takes %d servers, and the whole fleet has %d", a.Gang, a.Total)
	}
	return fmt.Sprintf("no server of the fleet, in whatever state, can satisfy the claim: %s", a)
}
