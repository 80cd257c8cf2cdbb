// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/metalaw/metalaw/engine/matching"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
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
	// failed is why the policy could not be asked, unknown why it says nothing of some of the servers; empty where it says something of
	// all.
	failed, unknown string
}

// matchNow looks up what each member may have now.
func (r *run) matchNow(ctx context.Context, everyone []asking) *matched {
	l := listing{servers: func(a asking) []*index.Entry { return r.v.fit(a).entries },
		ask: func(claim selection.Claim, some []*index.Entry) opinion { return r.v.opinionOf(ctx, claim, some) }}
	return r.v.match(ctx, everyone, l, func(a asking, e *index.Entry) bool { return r.s.patience.spent(a.claim, e) })
}

// listing looks up the servers of members.
type listing struct {
	// servers are those to look at, the same for all that ask the hard contract for the same.
	servers func(a asking) []*index.Entry
	// ask is what the policy makes of some.
	ask func(claim selection.Claim, some []*index.Entry) opinion
}

// opinion is what a policy says of servers: those that it allows, the best first.
type opinion struct {
	allowed []*index.Entry
	scores  []float64
	// failed says why none is known, unknown why some are not; empty where all are.
	failed, unknown string
}

// match puts together who may have what. Without says which servers to leave out for a member,
// nil for none.
func (v *view) match(ctx context.Context, everyone []asking, l listing, without func(asking, *index.Entry) bool) *matched {
	m := &matched{spread: slices.ContainsFunc(everyone, func(a asking) bool { return a.placed.Spread() != nil })}
	numbers, known := map[*index.Entry]int{}, answers{opinions: map[string]opinion{}, lists: map[string][]*index.Entry{}}
	var open []asking
	for i, a := range everyone {
		if _, has := v.written(a.claim); has {
			continue
		}
		m.open = append(m.open, i)
		open = append(open, a)
		var ranked []int
		for _, e := range v.listed(m, a, known, l) {
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
	v.setPlaces(ctx, m, open)
	return m
}

// answers is what was asked for some members: what the policy says, and the servers of those that ask for the same.
type answers struct {
	opinions map[string]opinion
	lists    map[string][]*index.Entry
}

// listed are the servers of a member, the best first, whatever stands where: of every alternative, and not only of the first. The policy
// is asked once for members that it cannot tell apart, whatever their placements are. Where it fails for some server it is asked
// about those alone that the placement accepts.
func (v *view) listed(m *matched, a asking, known answers, l listing) []*index.Entry {
	if a.class == nil {
		return nil
	}
	claim := policies.SelectionClaimOf(a.claim)
	claim.Priority = a.priority
	servers := l.servers(a)
	t, tells := v.policy.(telling)
	if !tells {
		o := l.ask(claim, v.acceptedOf(a, servers))
		m.note(o)
		return v.arranged(a, o)
	}
	asks := t.Asks(claim)
	key := a.class.key + "\x00" + asks
	if all, found := known.lists[key]; found {
		return all
	}
	shared := a.class.asked + "\x00" + asks
	o, found := known.opinions[shared]
	if !found {
		o = l.ask(claim, servers)
		known.opinions[shared] = o
	}
	if o.failed != "" {
		o = l.ask(claim, v.acceptedOf(a, servers))
	}
	m.note(o)
	known.lists[key] = v.arranged(a, o)
	return known.lists[key]
}

// note keeps why something is not known.
func (m *matched) note(o opinion) {
	m.failed, m.unknown = cmp.Or(m.failed, o.failed), cmp.Or(m.unknown, o.unknown)
}

// acceptedOf are the servers that the placement of a claim accepts, whatever stands where.
func (v *view) acceptedOf(a asking, entries []*index.Entry) []*index.Entry {
	t := v.judgements.of(a.placed)
	some := make([]*index.Entry, 0, len(entries))
	for _, e := range entries {
		if v.judgements.judge(t, e).accepted() && standsSomewhere(a, e) {
			some = append(some, e)
		}
	}
	return some
}

// standsSomewhere says that a server has a place, if that matters to a claim.
func standsSomewhere(a asking, e *index.Entry) bool {
	spread := a.placed.Spread()
	return spread == nil || spread.Place(e.Candidate().Facts()) != ""
}

// arranged are those of the servers that the placement of a claim accepts: by alternative, and the best first.
func (v *view) arranged(a asking, o opinion) (all []*index.Entry) {
	type scored struct {
		entry *index.Entry
		score float64
	}
	t, groups := v.judgements.of(a.placed), make([][]scored, a.placed.Alternatives())
	for i, e := range o.allowed {
		if j := v.judgements.judge(t, e); j.accepted() && standsSomewhere(a, e) {
			groups[j.alternative] = append(groups[j.alternative], scored{e, o.scores[i] + float64(j.score)})
		}
	}
	for _, group := range groups {
		if a.placed.Prefers() {
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
func (v *view) opinionOf(ctx context.Context, claim selection.Claim, some []*index.Entry) opinion {
	switch {
	case v.policy == nil:
		return opinion{failed: "no policy is in force"}
	case len(some) == 0:
		return opinion{}
	}
	byName, candidates := make(map[string]*index.Entry, len(some)), make([]*selection.PreparedCandidate, len(some))
	for i, e := range some {
		byName[e.Name()], candidates[i] = e, e.Candidate()
	}
	c := &choice{rejected: map[string]int{}}
	v.ask(ctx, claim, candidates, c, true)
	o := opinion{failed: c.failed, unknown: c.unknown, allowed: make([]*index.Entry, len(c.ranked)), scores: make([]float64, len(c.ranked))}
	for i, one := range c.ranked {
		o.allowed[i], o.scores[i] = byName[one.Name], one.Score
	}
	return o
}

// setPlaces says what the places of servers are to the members.
func (v *view) setPlaces(ctx context.Context, m *matched, open []asking) {
	if len(open) == 0 || open[0].class == nil || open[0].placed.Spread() == nil { // what has no meaning has no class
		return
	}
	first, counts := open[0].placed.Spread(), v.counts(ctx, open[0])
	seen := map[*class]bool{}
	for _, a := range open {
		spread := a.placed.Spread()
		if seen[a.class] {
			continue
		}
		seen[a.class] = true
		if a.class == nil || spread == nil || spread.Key != first.Key || spread.MaxSkew != first.MaxSkew || !maps.Equal(counts, v.counts(ctx, a)) ||
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
	uncounted := map[int]bool{}
	for n, e := range m.entries {
		place, known := numbers[first.Place(e.Candidate().Facts())]
		m.Place[n], uncounted[n] = place, !known
	}
	for i, ranked := range m.Ranked { // nobody knows what a place has that came up since
		m.Ranked[i] = slices.DeleteFunc(ranked, func(n int) bool { return uncounted[n] })
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
	sequence := r.v.fleet.Sequence()
	if e = r.s.fleet.Free(e.Name(), a.spec); e == nil { // as it is now: the search may have taken long
		return nil
	}
	claim := policies.SelectionClaimOf(a.claim)
	claim.Priority = a.priority
	c := &choice{sequence: sequence}
	r.v.rank(ctx, a, claim, &fits{entries: []*index.Entry{e}, candidates: []*selection.PreparedCandidate{e.Candidate()}}, c)
	if c.failed != "" || len(c.ranked) == 0 {
		return nil
	}
	t := &attempt{asking: a, todo: step{action: bind, choice: c, revision: r.v.revision, spec: a.spec}}
	if !r.next(ctx, t) {
		return nil
	}
	return t
}
