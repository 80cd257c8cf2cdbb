// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"cmp"
	"context"
	"slices"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

// rank asks the policy about the servers that the claim's placement accepts: about one alternative after the other, until it
// allows any of one.
func (s *Snapshot) rank(ctx context.Context, c *claims.Claim, can *feasible, r *ranking) {
	r.rejected = map[string]int{}
	if c.Placement == nil {
		s.ask(ctx, c.Asked, can.candidates, r, false)
		return
	}
	for _, group := range s.groupsOf(ctx, c, can, r) {
		if len(group) == 0 {
			continue
		}
		s.ask(ctx, c.Asked, group, r, c.Placement.Prefers())
		if c.Placement.Prefers() {
			prefer(r.ranked, s.scoresOf(c.Placement, can))
		}
		if r.allowed > 0 || r.failed != "" {
			return
		}
	}
}

// groupsOf are the servers that a claim's placement accepts as they stand now, by alternative. They are valid until the next call. The
// others are counted in the ranking by code.
func (s *Snapshot) groupsOf(ctx context.Context, c *claims.Claim, can *feasible, r *ranking) (groups [][]*selection.PreparedCandidate) {
	p := c.Placement
	room, t, counts, spread := s.roomOf(c), s.cache().of(p), make([]int, len(judgementCodes)), 0
	for len(s.groups) < p.Alternatives() {
		s.groups = append(s.groups, nil)
	}
	groups = s.groups[:p.Alternatives()]
	for i := range groups {
		groups[i] = groups[i][:0]
	}
	for i, e := range can.entries {
		if i%1024 == 0 && ctx.Err() != nil {
			r.failed = "the search was ended"
			return nil
		}
		one := s.cache().judge(t, e)
		switch {
		case !one.accepted():
			counts[one.code]++
		case room.allows(e):
			groups[one.alternative] = append(groups[one.alternative], can.candidates[i])
		default:
			spread++
		}
	}
	r.misplaced = map[string]int{}
	for code, n := range counts {
		if n > 0 {
			r.misplaced[judgementCodes[code]] = n
		}
	}
	if spread > 0 {
		r.misplaced[placement.CodeSpread] = spread
	}
	return groups
}

// lookCost is what it costs to ask a policy about one server, in the units of a placement's cost.
const lookCost = 20

// ask adds to a ranking what the policy says of some servers.
func (s *Snapshot) ask(ctx context.Context, claim selection.Claim, some []*selection.PreparedCandidate, r *ranking, whole bool) {
	s.Spent.Evaluations++
	s.cache().work += lookCost * int64(len(some))
	result, err := s.selected(ctx, claim, some, whole)
	if err != nil {
		r.failed = selection.Anonymous(err)
	}
	r.ranked, r.allowed = result.Ranked, max(result.Allowed, len(result.Ranked))
	for code, one := range result.Rejections {
		r.rejected[code] += one.Count
	}
	if n := result.Unjudged.Count; n > 0 {
		s.Spent.Unjudged += n
		s.Spent.Failures = append(s.Spent.Failures, Failures{result.Failures, n == result.Evaluated})
		r.unjudged, r.unknown = r.unjudged+n, cmp.Or(r.unknown, result.Unjudged.Message)
	}
}

func (s *Snapshot) selected(ctx context.Context, claim selection.Claim, some []*selection.PreparedCandidate, whole bool) (selection.Result, error) {
	if p, ok := s.Policy.(ranker); ok && whole {
		return p.Rank(ctx, claim, some, s.counts(claim.Namespace), len(some))
	}
	return s.Policy.Select(ctx, claim, some, s.counts(claim.Namespace))
}

// scoresOf are what a placement adds to the scores of servers, by name.
func (s *Snapshot) scoresOf(p *placement.Placement, can *feasible) map[string]float64 {
	t, scores := s.cache().of(p), make(map[string]float64, len(can.entries))
	for _, e := range can.entries {
		scores[e.Name()] = float64(s.cache().judge(t, e).score)
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
