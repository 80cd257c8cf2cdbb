// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/metalaw/metalaw/engine/selection"
)

// ranking is a Policy that gives a ranking of any length.
type ranking interface {
	Rank(ctx context.Context, claim selection.Claim, candidates []*selection.PreparedCandidate, fleet selection.Fleet,
		most int) (selection.Result, error)
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

var _ ranking = &selection.Policy{}
