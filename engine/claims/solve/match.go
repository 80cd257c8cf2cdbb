// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"cmp"
	"slices"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/index"
	"github.com/metalaw/metalaw/engine/matching"
	"github.com/metalaw/metalaw/engine/selection"
)

// match says which member of a gang without spread may have which server, of the members for which none is written.
type match struct {
	*solver
	matching.Problem
	// some are all members, open those members by their place among all, and entries the servers by their number in the Problem.
	some    []*claims.Claim
	open    []int
	entries []*index.Entry
	// failed is why the policy could not be asked, unknown why it says nothing of some of the servers; empty where it says something of
	// all.
	failed, unknown string
	// opinions are what the policy says, lists the servers of those that ask for the same.
	opinions map[string]opinion
	lists    map[string][]*index.Entry
}

// opinion is what a policy says of servers: those that it allows, the best first.
type opinion struct {
	allowed []*index.Entry
	scores  []float64
	// failed says why none is known, unknown why some are not; empty where all are.
	failed, unknown string
}

// begin puts together which member may have what. It says whether it ended at the limit.
func (m *match) begin(most int64) (limited bool) {
	numbers := map[*index.Entry]int{}
	for i, c := range m.some {
		if _, has := m.Written(c); has {
			continue
		}
		if m.Cache.work > most {
			return true
		}
		m.open = append(m.open, i)
		var ranked []int
		for _, e := range m.listedFor(c) {
			if m.isSpent(c, e) {
				continue
			}
			n, numbered := numbers[e]
			if !numbered {
				n, numbers[e] = len(m.entries), len(m.entries)
				m.entries = append(m.entries, e)
			}
			if ranked = append(ranked, n); len(ranked) == len(m.some) {
				break // the others can take no more than these
			}
		}
		m.Ranked = append(m.Ranked, ranked)
	}
	m.Servers = len(m.entries)
	return false
}

// listedFor are the servers of a member, the best first: of every alternative, and not only of the first. The policy is
// asked once for members that it cannot tell apart, also if their placements differ. Where it fails it is asked about
// those alone that the placement accepts.
func (m *match) listedFor(c *claims.Claim) []*index.Entry {
	if c.Invalid != "" || c.Unplaced != "" {
		return nil
	}
	servers := m.feasibleFor(c).entries
	t, tells := m.Policy.(telling)
	if !tells {
		o := m.opinionOf(c.Asked, m.acceptedOf(c, servers))
		m.note(o)
		return m.arranged(c, o)
	}
	asks := t.Asks(c.Asked)
	key := c.Class() + "\x00" + asks
	if all, found := m.lists[key]; found {
		return all
	}
	shared := c.Contract() + "\x00" + asks
	o, found := m.opinions[shared]
	if !found {
		o = m.opinionOf(c.Asked, servers)
		m.opinions[shared] = o
	}
	if o.failed != "" {
		o = m.opinionOf(c.Asked, m.acceptedOf(c, servers))
	}
	m.note(o)
	m.lists[key] = m.arranged(c, o)
	return m.lists[key]
}

// note keeps why something is not known.
func (m *match) note(o opinion) {
	m.failed, m.unknown = cmp.Or(m.failed, o.failed), cmp.Or(m.unknown, o.unknown)
}

// acceptedOf are the servers that the placement of a claim accepts.
func (m *match) acceptedOf(c *claims.Claim, entries []*index.Entry) []*index.Entry {
	judged := m.Cache.of(c.Placement)
	return slices.DeleteFunc(slices.Clone(entries), func(e *index.Entry) bool {
		return !m.Cache.judge(judged, e).accepted()
	})
}

// arranged are those of the servers that the placement of a claim accepts: by alternative, and the best first.
func (m *match) arranged(c *claims.Claim, o opinion) (all []*index.Entry) {
	type scored struct {
		entry *index.Entry
		score float64
	}
	judged, groups := m.Cache.of(c.Placement), make([][]scored, c.Placement.Alternatives())
	for i, e := range o.allowed {
		if j := m.Cache.judge(judged, e); j.accepted() {
			groups[j.alternative] = append(groups[j.alternative], scored{e, o.scores[i] + float64(j.score)})
		}
	}
	for _, group := range groups {
		if c.Placement.Prefers() {
			slices.SortFunc(group, func(x, y scored) int {
				return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(x.entry.Name(), y.entry.Name()))
			})
		}
		for _, one := range group {
			all = append(all, one.entry)
		}
	}
	return all
}

// opinionOf asks the policy about some servers.
func (m *match) opinionOf(claim selection.Claim, some []*index.Entry) opinion {
	if len(some) == 0 {
		return opinion{}
	}
	byName, candidates := make(map[string]*index.Entry, len(some)), make([]*selection.PreparedCandidate, len(some))
	for i, e := range some {
		byName[e.Name()], candidates[i] = e, e.Candidate()
	}
	r := &ranking{rejected: map[string]int{}}
	m.ask(claim, candidates, r, true)
	o := opinion{failed: r.failed, unknown: r.unknown, allowed: make([]*index.Entry, len(r.ranked)), scores: make([]float64, len(r.ranked))}
	for i, one := range r.ranked {
		o.allowed[i], o.scores[i] = byName[one.Name], one.Score
	}
	return o
}

// take gives each member the server that it is matched to. What a policy that follows counts says meanwhile is asked anew.
func (m *match) take() []pick {
	picks := make([]pick, len(m.some))
	for i, c := range m.some {
		if r, has := m.Written(c); has {
			picks[i] = pick{Result: r}
		}
	}
	servers, _ := m.Solve()
	for k, server := range servers {
		if server == matching.None {
			continue
		}
		i := m.open[k]
		if p, ok := m.takeThis(m.some[i], m.entries[server]); ok {
			picks[i] = p
			m.give(p.Entry, m.some[i])
		}
	}
	return picks
}

// takeThis chooses a server for a claim if it may have it, with what was given away since that was looked up.
func (m *match) takeThis(c *claims.Claim, e *index.Entry) (pick, bool) {
	r := &ranking{sequence: m.Fleet.Sequence()}
	if e = m.free(e.Name(), c.Spec); e == nil {
		return pick{}, false
	}
	m.rank(c, feasibleOf([]*index.Entry{e}), r)
	if r.failed != "" || len(r.ranked) == 0 {
		return pick{}, false
	}
	return m.next(c, r)
}
