// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"maps"
	"slices"

	"github.com/metalaw/metalaw/engine/matching"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/policies"
)

// match is who of those that want a server could have which, were it alone and nobody's spread in the way.
type match struct {
	matching.Problem
	// names are those of the servers by their number in the Problem.
	names []string
	// spread says that the places of servers matter to some member; alike that they matter to all in the same way, and then counts are
	// those of each place.
	spread, alike bool
	maxSkew       int64
	counts        []int64
}

// match looks up what each member that has none could have.
func (s *search) match(ctx context.Context) (*match, error) {
	m := &match{}
	numbers, facts := map[string]int{}, s.fleet.facts()
	judges := make([]*judge, len(s.wanting))
	for k, i := range s.wanting {
		j, err := newJudge(ctx, s.policy, s.members[i].Claim, s.members[i].Priority, s.fleet)
		if err != nil {
			return nil, err
		}
		judges[k] = j
		m.spread = m.spread || j.placement.Spread() != nil
		alone := *j
		alone.counts, alone.brief = nil, true
		a := alone.answer()
		var ranked []int
		for _, v := range a.Verdicts[:a.Fits] {
			n, known := numbers[v.Name]
			if !known {
				n, numbers[v.Name] = len(m.names), len(m.names)
				m.names = append(m.names, v.Name)
			}
			ranked = append(ranked, n)
		}
		m.Ranked = append(m.Ranked, ranked)
	}
	m.Servers = len(m.names)
	if len(judges) == 0 || !s.spreadAlike(judges) {
		return m, nil
	}
	spread := judges[0].placement.Spread()
	m.alike, m.maxSkew = true, spread.MaxSkew
	places := map[string]int{}
	for _, place := range slices.Sorted(maps.Keys(judges[0].counts)) {
		places[place] = len(m.counts)
		m.counts = append(m.counts, judges[0].counts[place])
	}
	m.Place = make([]int, m.Servers)
	for n, name := range m.names {
		m.Place[n] = places[spread.Place(facts[name])]
	}
	return m, nil
}

// spreadAlike says that members are spread by the same key, skew and counts, and all count for each other.
func (s *search) spreadAlike(judges []*judge) bool {
	first := judges[0]
	counts := func(spread *placement.Spread) bool {
		return !slices.ContainsFunc(s.wanting, func(i int) bool {
			c := s.members[i].Claim
			gang := policies.GangOf(c)
			return gang == nil || !spread.Counts(c.Labels, gang.Name)
		})
	}
	return !slices.ContainsFunc(judges, func(j *judge) bool {
		spread := j.placement.Spread()
		return spread == nil || spread.Key != first.placement.Spread().Key || spread.MaxSkew != first.placement.Spread().MaxSkew ||
			!maps.Equal(j.counts, first.counts) || !counts(spread)
	})
}

// isExact says that where solve finds nothing there is nothing.
func (m *match) isExact() bool { return !m.spread || m.alike }

// couldBe says that there are servers for all members if places do not matter.
func (m *match) couldBe() bool {
	_, complete := matching.Problem{Ranked: m.Ranked, Servers: m.Servers}.Solve()
	return complete
}

// choices is how many servers the kth of those that want one could have.
func (m *match) choices(k int) int { return len(m.Ranked[k]) }

func (m *match) solve() (servers []int, complete bool) {
	if m.alike {
		return m.SolveSpread(m.counts, m.maxSkew)
	}
	return m.Solve()
}
