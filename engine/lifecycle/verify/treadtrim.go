// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"maps"
	"slices"

	"github.com/metalaw/metalaw/engine/internal/bdd"
)

// trim leaves out exits that cannot be part of a round, because none of the others leads to where they are taken, or is taken
// where they lead. It looks at two at a time, and not at the retries, which is quick.
func (r *treadmill) trim() {
	r.trimEnds()
	follows := r.follows()
	for again := true; again; {
		again = false
		led := map[*leg]bool{}
		for _, next := range follows {
			for _, l := range next {
				led[l] = true
			}
		}
		maps.DeleteFunc(follows, func(l *leg, next []*leg) bool {
			ends := !led[l] || !slices.ContainsFunc(next, func(n *leg) bool { return len(follows[n]) > 0 })
			again = again || ends
			return ends
		})
	}
	for _, st := range r.stays {
		st.exits = slices.DeleteFunc(st.exits, func(l *leg) bool { return follows[l] == nil })
	}
}

// trimEnds leaves out exits to states that no exit leads out of.
func (r *treadmill) trimEnds() {
	for again := true; again; {
		again = false
		for _, st := range r.stays {
			exits := len(st.exits)
			st.exits = slices.DeleteFunc(st.exits, func(l *leg) bool { return len(r.stays[l.To].exits) == 0 })
			again = again || len(st.exits) < exits
		}
	}
}

// follows lists, for each exit, those that can be the next to be taken.
func (r *treadmill) follows() map[*leg][]*leg {
	retries := map[int]bool{}
	for v := range r.counts[0] {
		retries[v] = true
	}
	brought := map[*leg]bdd.Ref{} // from where a move into its state an exit is taken
	for _, v := range r.order {
		st := r.stays[v.Name]
		changed := maps.Clone(retries)
		for _, w := range st.works {
			maps.Copy(changed, w.changes)
			for mark := range w.marks {
				changed[mark] = true
			}
		}
		for _, l := range st.exits { // whatever the state ensures is taken for done, or not: that is quicker than to ask which
			brought[l] = r.Exists(r.And(r.Exists(l.ever, changed), r.begun), r.volatile)
		}
	}
	follows := map[*leg][]*leg{}
	for _, v := range r.order {
		for _, l := range r.stays[v.Name].exits {
			for _, next := range r.stays[l.To].exits {
				if r.Meet(l.ever, r.Restrict(brought[next], l.marks)) {
					follows[l] = append(follows[l], next)
				}
			}
		}
	}
	return follows
}
