// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"cmp"
	"slices"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/index"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

// rank asks the policy about the servers that the claim's placement accepts: about one alternative after the other, until it
// allows any of one.
func (s *solver) rank(c *claims.Claim, can *feasible, r *ranking) {
	r.rejected = map[string]int{}
	if c.Placement == nil {
		s.ask(c.Asked, can.candidates, r, false)
		return
	}
	for _, group := range s.groupsOf(c, can, r) {
		if len(group) == 0 {
			continue
		}
		s.ask(c.Asked, group, r, c.Placement.Prefers())
		if c.Placement.Prefers() {
			s.prefer(c.Placement, can.entries, r.ranked)
		}
		if r.allowed > 0 || r.failed != "" {
			return
		}
	}
}

// groupsOf are the servers that a claim's placement accepts as they stand now, by alternative. They are valid until the next call. The
// others are counted in the ranking by code.
func (s *solver) groupsOf(c *claims.Claim, can *feasible, r *ranking) (groups [][]*selection.PreparedCandidate) {
	alternatives := c.Placement.Alternatives()
	for len(s.Cache.groups) < alternatives {
		s.Cache.groups = append(s.Cache.groups, nil)
	}
	groups = s.Cache.groups[:alternatives]
	for i := range groups {
		groups[i] = groups[i][:0]
	}
	room, judged, counts, spread := s.roomOf(c), s.Cache.of(c.Placement), make([]int, len(judgementCodes)), 0
	for i, e := range can.entries {
		if i%1024 == 0 && s.ctx.Err() != nil {
			r.failed = "the search was ended"
			return nil
		}
		one := s.Cache.judge(judged, e)
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
func (s *solver) ask(claim selection.Claim, some []*selection.PreparedCandidate, r *ranking, whole bool) {
	s.Spent.Evaluations++
	s.Cache.work += lookCost * int64(len(some))
	result, err := s.selected(claim, some, whole)
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

func (s *solver) selected(claim selection.Claim, some []*selection.PreparedCandidate, whole bool) (selection.Result, error) {
	if p, ok := s.Policy.(ranker); ok && whole {
		return p.Rank(s.ctx, claim, some, s.counts(claim.Namespace), len(some))
	}
	return s.Policy.Select(s.ctx, claim, some, s.counts(claim.Namespace))
}

// prefer adds the scores of a placement to a ranking of some of the servers.
func (s *solver) prefer(p *placement.Placement, can []*index.Entry, ranked []selection.Ranked) {
	judged, scores := s.Cache.of(p), make(map[string]float64, len(can))
	for _, e := range can {
		scores[e.Name()] = float64(s.Cache.judge(judged, e).score)
	}
	for i := range ranked {
		ranked[i].Score += scores[ranked[i].Name]
	}
	slices.SortFunc(ranked, func(a, b selection.Ranked) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Name, b.Name))
	})
}
