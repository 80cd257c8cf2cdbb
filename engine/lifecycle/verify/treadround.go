// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"

	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/bdd"
)

// longestRound is how many moves of a round are gone, each with an example: marks can count to make one of any length.
const longestRound = 1000

const (
	roundHint = "let one of the rules ask for what only somebody outside brings, or count the retries and give up"
	countHint = "let no marks count, or let one of the rules ask for what only somebody outside brings"
)

// tell warns of one way in which servers go round for ever, and takes a move of it out, so that others can be found. It says whether it
// found one.
func (r *treadmill) tell(may map[position]bdd.Ref) bool {
	w, closed := r.follow(may)
	if len(w.hops) == 0 || r.Err() != nil {
		r.open = append(r.open, roundsUnknown)
		return false
	}
	if closed < 0 {
		i := mostMade(w.hops)
		r.warn(w.hops[i], w.examples[i], countHint, ", by moves that were not followed to where they begin again: "+wayWords(w.hops))
		r.drop(w.hops[i])
		return true
	}
	cycle, x := w.round(closed)
	r.warn(cycle[0], x, roundHint, ": "+cycleWords(cycle))
	r.drop(cycle[mostMade(cycle)])
	return true
}

func (r *treadmill) warn(h *hop, x *Counterexample, hint, moves string) {
	r.add(diag.Warning, CodeRound, h.At, h.Rule, x, hintOf(x, hint),
		"servers can go round for ever by what the states ensure and by time alone%s", moves)
}

func (r *treadmill) drop(h *hop) {
	st := r.stays[h.from]
	st.exits = slices.DeleteFunc(st.exits, func(l *leg) bool { return l.hop == h })
}

// mostMade is the move that is made most often; of those that set marks or take them away where some do, because it is marks that
// make a round long, and the others may be part of short ones.
func mostMade(way []*hop) int {
	made, most := map[*hop]int{}, 0
	for i, h := range way {
		made[h]++
		if len(h.marks) > 0 {
			made[h] += len(way)
		}
		if made[h] > made[way[most]] {
			most = i
		}
	}
	return most
}

// follow goes the way of a server, on the simplest facts, until it comes to where it was before, which is after the first so many moves.
// Of a way that is too long that is not known, and below zero.
func (r *treadmill) follow(may map[position]bdd.Ref) (w *walk, closed int) {
	w = &walk{}
	at, ok := r.start(may)
	if !ok {
		return w, -1
	}
	type visit struct {
		position
		facts string
	}
	seen := map[visit]int{}
	facts, ok := r.Cheapest(r.And(r.entry, may[at]), r.weights)
	for ok && len(w.hops) < longestRound && r.Err() == nil {
		for v, value := range r.counts[at.retries] {
			facts[v] = value
		}
		key := visit{at, r.spin.lasting(facts)}
		if first, known := seen[key]; known {
			return w, first
		}
		seen[key] = len(w.hops)
		l, left := r.leave(at, facts, may)
		if l == nil {
			break
		}
		w.hops, w.examples = append(w.hops, l.hop), append(w.examples, r.shown(l, at, left))
		at = position{l.To, r.retries(l.hop, at.retries)}
		facts, ok = r.among(r.And(r.entry, may[at]), left, r.volatile, l.marks)
	}
	return w, -1
}

// leave has the state do what it ensures until the server leaves it for where the round goes on.
func (r *treadmill) leave(at position, facts []bool, may map[position]bdd.Ref) (*leg, []bool) {
	st := r.stays[at.state]
	then := r.then(st, at.retries, may)
	for range len(st.works) + 1 {
		for i, l := range st.exits {
			if then[i] != bdd.False && r.Holds(r.leads(l, at.retries, then[i]), facts) {
				return l, facts
			}
		}
		i := slices.IndexFunc(st.works, func(w work) bool { return r.Holds(w.acts, facts) })
		if i < 0 {
			return nil, nil
		}
		next, ok := r.among(r.And(r.goesOn(st, at.retries, then), st.works[i].makes), facts, st.works[i].changes, st.works[i].marks)
		if !ok {
			return nil, nil
		}
		facts = next
	}
	return nil, nil
}

// among is the simplest facts by which f holds that differ from others in some variables only; marks are as they are said to be.
func (r *treadmill) among(f bdd.Ref, others []bool, differ map[int]bool, marks bdd.Fixed) ([]bool, bool) {
	kept := bdd.Fixed{}
	for v, value := range others {
		if !differ[v] && !r.age[v] {
			kept[v] = value
		}
	}
	for v := range r.counts[0] {
		delete(kept, v) // the comparisons of the retries follow from the position
	}
	for v, value := range marks {
		kept[v] = value
	}
	found, ok := r.Cheapest(r.Restrict(f, kept), r.weights)
	for v, value := range kept {
		if ok {
			found[v] = value
		}
	}
	return found, ok
}

// shown has the lifecycle decide where an exit is taken, at an age at which it is.
func (r *treadmill) shown(l *leg, at position, facts []bool) *Counterexample {
	v := r.stays[at.state].view
	taken := r.And(l.wayOut.taken, r.domain, r.lengths)
	if !v.Stable {
		taken = r.Without(taken, r.sooner(v, l.wayOut))
	}
	h := &hop{wayOut: l.wayOut, from: l.from, fires: make([]bdd.Ref, len(r.counts))}
	h.fires[at.retries] = r.Restrict(taken, r.counts[at.retries])
	aged, ok := r.among(h.fires[at.retries], facts, nil, nil)
	if !ok {
		aged = facts
	}
	return r.decided(h, at, aged)
}
