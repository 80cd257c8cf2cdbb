// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/controllers/scheduler/index"
	"github.com/metalaw/metalaw/engine/selection"
)

// ranking is a Policy that gives a ranking of any length.
type ranking interface {
	Rank(ctx context.Context, claim selection.Claim, candidates []*selection.PreparedCandidate, fleet selection.Fleet,
		most int) (selection.Result, error)
}

// places are the counts of a spread before any claim is counted, made when the index was at sequence.
type places struct {
	sequence uint64
	counts   map[string]int64
}

// rank asks the policy about the servers that the claim's placement accepts: about one alternative after the other, until it
// allows any of one.
func (v *view) rank(ctx context.Context, a asking, claim selection.Claim, fit *fits, c *choice) {
	c.rejected = map[string]int{}
	if a.placed == nil {
		v.ask(ctx, claim, fit.candidates, c, false)
	} else {
		sorted := a.placed.Sort(len(fit.candidates), func(i int) *selection.Candidate { return fit.candidates[i].Facts() }, v.counts(a))
		c.misplaced = map[string]int{}
		for code, r := range sorted.Rejections {
			c.misplaced[code] = r.Count
		}
		for _, group := range sorted.Groups {
			if len(group) == 0 {
				continue
			}
			some, scores := make([]*selection.PreparedCandidate, len(group)), map[string]float64{}
			for i, at := range group {
				some[i] = fit.candidates[at]
				if sorted.Scores != nil {
					scores[some[i].Name()] = float64(sorted.Scores[at])
				}
			}
			v.ask(ctx, claim, some, c, a.placed.Prefers())
			if sorted.Scores != nil {
				prefer(c.ranked, scores)
			}
			if c.allowed > 0 || c.failed != "" {
				break
			}
		}
	}
}

// ask adds to a choice what the policy says of some servers.
func (v *view) ask(ctx context.Context, claim selection.Claim, some []*selection.PreparedCandidate, c *choice, whole bool) {
	evaluations.Inc()
	ask := v.policy.Select
	if p, ok := v.policy.(ranking); ok && whole {
		ask = func(ctx context.Context, claim selection.Claim, some []*selection.PreparedCandidate, f selection.Fleet) (selection.Result, error) {
			return p.Rank(ctx, claim, some, f, len(some))
		}
	}
	result, err := ask(ctx, claim, some, v.fleet.CountsFor(claim.Namespace, v.now))
	if err != nil {
		c.failed = withoutNames(err)
	}
	c.ranked, c.allowed = result.Ranked, max(result.Allowed, len(result.Ranked))
	for code, r := range result.Rejections {
		c.rejected[code] += r.Count
	}
}

// withoutNames is the text of an error for a claim's author, who may not know which servers there are.
func withoutNames(err error) string {
	var candidate selection.CandidateError
	if errors.As(err, &candidate) {
		return candidate.Anonymous()
	}
	return err.Error()
}

// prefer adds the scores of a placement to a ranking.
func prefer(ranked []selection.Ranked, scores map[string]float64) {
	for i := range ranked {
		ranked[i].Score += scores[ranked[i].Name]
	}
	slices.SortFunc(ranked, func(a, b selection.Ranked) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Name, b.Name))
	})
}

// spreads says that the spread of a claim still allows a server, with what was given away since the policy was asked.
func (v *view) spreads(a asking, e *index.Entry) bool {
	spread := a.placed.Spread()
	if spread == nil {
		return true
	}
	ok, _ := spread.Allows(spread.Place(e.Candidate().Facts()), v.counts(a))
	return ok
}

// counts are those of a claim's spread: how many of the claims that count each place has. What is assumed for a claim counts as
// what is written for it.
func (v *view) counts(a asking) map[string]int64 {
	spread := a.placed.Spread()
	if spread == nil {
		return nil
	}
	counts := maps.Clone(v.placesOf(a))
	if v.neighbours == nil {
		return counts
	}
	assumed := map[types.UID]string{}
	for server, uid := range v.fleet.Assumed() {
		assumed[uid] = server
	}
	for _, n := range v.neighbours(a.claim.Namespace) {
		if n.claim.UID == a.claim.UID || !spread.Counts(n.claim.Labels, n.gangName()) {
			continue
		}
		for _, e := range v.serversOf(n, assumed[n.claim.UID]) {
			place := spread.Place(e.Candidate().Facts())
			if _, known := counts[place]; known {
				counts[place]++
			}
		}
	}
	return counts
}

func (v *view) placesOf(a asking) map[string]int64 {
	known, sequence := v.places[a.class.key], v.fleet.Sequence()
	if known.counts == nil || known.sequence != sequence {
		all := v.fleet.Matching(a.spec)
		known = places{sequence, a.placed.Places(len(all), func(i int) *selection.Candidate { return all[i].Candidate().Facts() })}
		v.places[a.class.key] = known
	}
	return known.counts
}

// serversOf are the servers that a claim has, or is about to have.
func (v *view) serversOf(n *neighbour, assumed string) []*index.Entry {
	var all []*index.Entry
	if e := v.fleet.Get(assumed); e != nil {
		all = append(all, e)
	}
	for _, e := range v.fleet.HeldBy(index.ClaimKey{Namespace: n.claim.Namespace, Name: n.claim.Name}) {
		if relation := RelationOf(e.Server, n.claim); e.Name() != assumed && (relation == Holds || relation == Adoptable) {
			all = append(all, e)
		}
	}
	return all
}

var _ ranking = &selection.Policy{}
