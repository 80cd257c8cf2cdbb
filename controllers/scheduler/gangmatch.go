// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/metalaw/metalaw/controllers/scheduler/index"
	"github.com/metalaw/metalaw/engine/matching"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// matched is who of a gang may have which server, of the members for which none is written.
type matched struct {
	matching.Problem
	// open are those members by their place among everyone; entries are the servers by their number in the Problem.
	open    []int
	entries []*index.Entry
	// spread says that the places of servers matter to some member; alike that they matter to all members in the same way, and then
	// counts are those of each place.
	spread, alike bool
	maxSkew       int64
	counts        []int64
	// failed is why the policy could not be asked about all of the servers; empty where it could.
	failed string
}

// matchNow looks up what each member may have now.
func (r *run) matchNow(ctx context.Context, everyone []asking) *matched {
	return r.v.match(everyone, func(a asking, claim selection.Claim) ([]*index.Entry, string) {
		return r.v.everything(ctx, a, claim, r.v.fit(a).entries)
	}, func(a asking, e *index.Entry) bool { return r.s.patience.holds(a.claim, e, r.s.now()) })
}

// listing looks up the servers of a member, the best first. The words say why not all are known; empty where they are.
type listing func(asking, selection.Claim) (all []*index.Entry, failed string)

// match puts together who may have what. Lists is asked once for members that ask for the same; without says which servers to leave
// out for a member, nil for none.
func (v *view) match(everyone []asking, lists listing, without func(asking, *index.Entry) bool) *matched {
	m := &matched{spread: slices.ContainsFunc(everyone, func(a asking) bool { return a.placed.Spread() != nil })}
	numbers, known := map[*index.Entry]int{}, map[string][]*index.Entry{}
	var open []asking
	for i, a := range everyone {
		if _, has := v.written(a.claim); has {
			continue
		}
		m.open = append(m.open, i)
		open = append(open, a)
		var ranked []int
		for _, e := range v.listed(m, a, known, lists) {
			if without != nil && without(a, e) {
				continue
			}
			n, numbered := numbers[e]
			if !numbered {
				n, numbers[e] = len(m.entries), len(m.entries)
				m.entries = append(m.entries, e)
			}
			if ranked = append(ranked, n); !m.spread && len(ranked) == len(everyone) {
				break // the others can take no more than these
			}
		}
		m.Ranked = append(m.Ranked, ranked)
	}
	m.Servers = len(m.entries)
	v.setPlaces(m, open)
	return m
}

// listed asks for a list, or finds it among those that are known.
func (v *view) listed(m *matched, a asking, known map[string][]*index.Entry, lists listing) []*index.Entry {
	if a.class == nil {
		return nil
	}
	claim := policies.SelectionClaimOf(a.claim)
	claim.Priority = a.priority
	key := ""
	if t, ok := v.policy.(telling); ok {
		key = a.class.key + "\x00" + t.Asks(claim)
		if all, found := known[key]; found {
			return all
		}
	}
	all, failed := lists(a, claim)
	m.failed = cmp.Or(m.failed, failed)
	if key != "" {
		known[key] = all
	}
	return all
}

// accepted are the servers that the placement of a claim accepts, whatever stands where.
type accepted struct {
	// groups are those of each alternative, and entries those of all by name.
	groups  [][]*selection.PreparedCandidate
	entries map[string]*index.Entry
	// scores are what the placement adds to that of the policy.
	scores map[string]float64
}

func acceptedOf(a asking, entries []*index.Entry) accepted {
	out := accepted{entries: make(map[string]*index.Entry, len(entries)), scores: map[string]float64{}}
	at := func(i int) *selection.Candidate { return entries[i].Candidate().Facts() }
	sorted := a.placed.Sort(len(entries), at, nil)
	for _, group := range sorted.Groups {
		some := make([]*selection.PreparedCandidate, len(group))
		for i, n := range group {
			e := entries[n]
			some[i], out.entries[e.Name()] = e.Candidate(), e
			if sorted.Scores != nil {
				out.scores[e.Name()] = float64(sorted.Scores[n])
			}
		}
		out.groups = append(out.groups, some)
	}
	return out
}

// everything are those of some servers that a claim may have, the best first, whatever stands where: of every alternative, and not
// only of the first. The words say why not all are known; empty where they are.
func (v *view) everything(ctx context.Context, a asking, claim selection.Claim, entries []*index.Entry) (all []*index.Entry, failed string) {
	accepted := acceptedOf(a, entries)
	for _, group := range accepted.groups {
		if len(group) == 0 || v.policy == nil {
			continue
		}
		c := &choice{rejected: map[string]int{}}
		v.ask(ctx, claim, group, c, true)
		failed = cmp.Or(failed, c.failed)
		prefer(c.ranked, accepted.scores)
		for _, one := range c.ranked {
			all = append(all, accepted.entries[one.Name])
		}
	}
	return all, failed
}

// setPlaces says what the places of servers are to the members.
func (v *view) setPlaces(m *matched, open []asking) {
	if len(open) == 0 || open[0].placed.Spread() == nil {
		return
	}
	first, counts := open[0].placed.Spread(), v.counts(open[0])
	seen := map[*class]bool{}
	for _, a := range open {
		spread := a.placed.Spread()
		if seen[a.class] {
			continue
		}
		seen[a.class] = true
		if spread == nil || spread.Key != first.Key || spread.MaxSkew != first.MaxSkew || !maps.Equal(counts, v.counts(a)) ||
			slices.ContainsFunc(open, func(o asking) bool { return !spread.Counts(o.claim.Labels, o.placed.Gang().Name) }) {
			return
		}
	}
	m.alike, m.maxSkew = true, first.MaxSkew
	numbers := map[string]int{}
	for _, place := range slices.Sorted(maps.Keys(counts)) {
		numbers[place] = len(m.counts)
		m.counts = append(m.counts, counts[place])
	}
	m.Place = make([]int, m.Servers)
	for n, e := range m.entries {
		m.Place[n] = numbers[first.Place(e.Candidate().Facts())]
	}
}

// isExact says that where solve finds nothing there is nothing.
func (m *matched) isExact() bool { return !m.spread || m.alike }

// couldBe says that there are servers for all members if places do not matter.
func (m *matched) couldBe() bool {
	_, complete := matching.Problem{Ranked: m.Ranked, Servers: m.Servers}.Solve()
	return complete
}

// complete says that there is a way to serve all members.
func (m *matched) complete() bool {
	_, complete := m.solve()
	return complete
}

// choices is how many servers one of everyone may have.
func (m *matched) choices(member int) int {
	if at := slices.Index(m.open, member); at >= 0 {
		return len(m.Ranked[at])
	}
	return 0
}

// solve gives members one of their servers each, as many as possible.
func (m *matched) solve() (servers []int, complete bool) {
	if m.alike {
		return m.SolveSpread(m.counts, m.maxSkew)
	}
	return m.Solve()
}

// takeMatched assumes for each member the server that it is matched to. Those that have one count as found.
func (r *run) takeMatched(ctx context.Context, m *matched, everyone []asking) (found []*attempt) {
	for _, a := range everyone {
		if s, has := r.v.written(a.claim); has {
			found = append(found, &attempt{asking: a, todo: s})
		}
	}
	servers, _ := m.solve()
	for _, i := range m.Order(servers, m.counts) {
		if t := r.takeThis(ctx, everyone[m.open[i]], m.entries[servers[i]]); t != nil {
			found = append(found, t)
		}
	}
	return found
}

// takeThis assumes a server for a claim if it may have it, with what was given away since that was looked up; else it returns nil.
func (r *run) takeThis(ctx context.Context, a asking, e *index.Entry) *attempt {
	if r.s.fleet.Free(e.Name(), a.spec) == nil {
		return nil
	}
	claim := policies.SelectionClaimOf(a.claim)
	claim.Priority = a.priority
	c := &choice{sequence: r.v.fleet.Sequence()}
	r.v.rank(ctx, a, claim, &fits{entries: []*index.Entry{e}, candidates: []*selection.PreparedCandidate{e.Candidate()}}, c)
	if c.failed != "" || len(c.ranked) == 0 {
		return nil
	}
	t := &attempt{asking: a, todo: step{action: bind, choice: c, revision: r.v.revision, spec: a.spec}}
	if !r.next(t) {
		return nil
	}
	return t
}
