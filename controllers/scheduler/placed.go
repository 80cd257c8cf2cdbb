// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"context"
	"slices"

	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

// ranking is a Policy that gives a ranking of any length.
type ranking interface {
	Rank(ctx context.Context, claim selection.Claim, candidates []*selection.PreparedCandidate, fleet selection.Fleet,
		most int) (selection.Result, error)
}

// groupsOf are the servers that a claim's placement accepts as they stand now, by alternative. They are valid until the next call. The
// others are counted in the choice by code.
func (v *view) groupsOf(p *placement.Placement, fit *fits, room *headroom, c *choice) (groups [][]*selection.PreparedCandidate) {
	t, counts, spread := v.judgements.of(p), make([]int, len(judgementCodes)), 0
	for len(v.groups) < p.Alternatives() {
		v.groups = append(v.groups, nil)
	}
	groups = v.groups[:p.Alternatives()]
	for i := range groups {
		groups[i] = groups[i][:0]
	}
	room.openPlaces(v.writing != nil && v.writing())
	for i, e := range fit.entries {
		one := v.judgements.judge(t, e)
		switch {
		case !one.accepted():
			counts[one.code]++
		case room.isOpen(e):
			groups[one.alternative] = append(groups[one.alternative], fit.candidates[i])
		default:
			spread++
		}
	}
	c.misplaced = map[string]int{}
	for code, n := range counts {
		if n > 0 {
			c.misplaced[judgementCodes[code]] = n
		}
	}
	if spread > 0 {
		c.misplaced[placement.CodeSpread] = spread
	}
	c.contended = room.isContended()
	return groups
}

// rank asks the policy about the servers that the claim's placement accepts: about one alternative after the other, until it
// allows any of one.
func (v *view) rank(ctx context.Context, a asking, claim selection.Claim, fit *fits, c *choice) {
	c.rejected = map[string]int{}
	if a.placed == nil {
		v.ask(ctx, claim, fit.candidates, c, false)
		return
	}
	for _, group := range v.groupsOf(a.placed, fit, v.headroomOf(ctx, a), c) {
		if len(group) == 0 {
			continue
		}
		v.ask(ctx, claim, group, c, a.placed.Prefers())
		if a.placed.Prefers() {
			prefer(c.ranked, v.scoresOf(a.placed, fit))
		}
		if c.allowed > 0 || c.failed != "" {
			return
		}
	}
}

// ask adds to a choice what the policy says of some servers.
func (v *view) ask(ctx context.Context, claim selection.Claim, some []*selection.PreparedCandidate, c *choice, whole bool) {
	evaluations.Inc()
	v.judgements.work += lookCost * int64(len(some))
	ask := v.policy.Select
	if p, ok := v.policy.(ranking); ok && whole {
		ask = func(ctx context.Context, claim selection.Claim, some []*selection.PreparedCandidate, f selection.Fleet) (selection.Result, error) {
			return p.Rank(ctx, claim, some, f, len(some))
		}
	}
	result, err := ask(ctx, claim, some, v.fleet.CountsFor(claim.Namespace, v.now))
	if err != nil {
		c.failed = selection.Anonymous(err)
	}
	c.ranked, c.allowed = result.Ranked, max(result.Allowed, len(result.Ranked))
	for code, r := range result.Rejections {
		c.rejected[code] += r.Count
	}
	if n := result.Unjudged.Count; n > 0 {
		unjudged.Add(float64(n))
		if v.failed != nil {
			v.failed(ctx, result.Failures, n == result.Evaluated)
		}
		c.unjudged, c.unknown = c.unjudged+n, cmp.Or(c.unknown, result.Unjudged.Message)
	}
}

// scoresOf are what a placement adds to the scores of servers, by name.
func (v *view) scoresOf(p *placement.Placement, fit *fits) map[string]float64 {
	t, scores := v.judgements.of(p), make(map[string]float64, len(fit.entries))
	for _, e := range fit.entries {
		scores[e.Name()] = float64(v.judgements.judge(t, e).score)
	}
	return scores
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
