// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"

	"github.com/metalaw/metalaw/engine/internal/bdd"
)

// longestRound is how many moves of a round are gone, each with an example: marks can count to make one of any length.
const longestRound = 1000

// follow goes the round of a server, on the simplest facts, until it comes to where it was before; nothing where it is lost.
func (r *treadmill) follow(may map[position]bdd.Ref) ([]*hop, *Counterexample) {
	at, ok := r.start(may)
	if !ok {
		return nil, nil
	}
	type visit struct {
		position
		facts string
	}
	seen := map[visit]int{}
	w := &walk{}
	facts, ok := r.Cheapest(r.And(r.entry, may[at]), r.weights)
	for ok && len(w.hops) < longestRound && r.Err() == nil {
		key := visit{at, r.spin.lasting(facts)}
		if first, known := seen[key]; known {
			return w.round(first)
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
	return nil, nil
}

// leave has the state do what it ensures until the server leaves it for where the round goes on.
func (r *treadmill) leave(at position, facts []bool, may map[position]bdd.Ref) (*leg, []bool) {
	st := r.stays[at.state]
	for range len(st.works) + 1 {
		for _, l := range st.exits {
			_, goesOn := may[position{l.To, r.retries(l.hop, at.retries)}]
			if goesOn && r.Holds(l.taken[at.retries], facts) {
				return l, facts
			}
		}
		i := slices.IndexFunc(st.works, func(w work) bool { return r.Holds(w.acts, facts) })
		if i < 0 {
			return nil, nil
		}
		then, ok := r.among(r.And(st.within, st.works[i].makes), facts, st.works[i].changes, st.works[i].marks)
		if !ok {
			return nil, nil
		}
		facts = then
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
