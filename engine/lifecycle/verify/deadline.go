// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/bdd"
)

// checkDeadlines reports exits whose time never comes, because another exit leaves the state sooner by time alone. Where
// nothing but such an exit would bring a server to rest, it is an error: the server would go round by its deadlines for ever. So
// it is where such an exit is what gives up after retries.
func (c *checker) checkDeadlines() {
	var s *spin
	var forever map[position]bdd.Ref
	for _, v := range c.order {
		for i := range v.exits {
			w := &v.exits[i]
			other := c.outrun(v, w)
			if other == nil {
				continue
			}
			if s == nil {
				s = c.newSpin(true)
				forever = s.forever(nil)
			}
			if cycle, x := s.endedBy(forever, v, w); cycle != nil {
				c.add(diag.Error, CodeDeadlineTooLate, w.After.At, w.Rule, x,
					"let it come no later than "+other.Rule+", and before it in the list",
					"in %s, the deadline of %s is never reached, because %s leaves the state sooner, and without it servers go round "+
						"by their deadlines for ever: %s",
					v.Name, w.Rule, other.Rule, cycleWords(cycle))
				continue
			}
			if s.limitLost(v, w, other) {
				c.add(diag.Error, CodeDeadlineTooLate, w.After.At, w.Rule, nil, "let it come no later than "+other.Rule+", and before it in the list",
					"in %s, the deadline of %s, which gives up after retries, is never reached: %s tries again sooner, as often as it comes to that",
					v.Name, w.Rule, other.Rule)
				continue
			}
			c.add(diag.Warning, CodeDeadlineTooLate, w.After.At, w.Rule, nil, "shorten it, or give "+other.Rule+" a guard",
				"in %s, the deadline of %s is never reached: %s leaves the state sooner", v.Name, w.Rule, other.Rule)
		}
	}
}

// limitLost says that an exit is there to give up after retries, that what leaves the state before is the retry itself,
// and that it comes back there without nearing rest or another exit that gives up: for any facts on the way, the
// retries have no end.
func (s *spin) limitLost(v *view, w, other *wayOut) bool {
	if !other.Retry || !s.givesUp(w) || s.limits(v) {
		return false
	}
	seen := map[engine.State]bool{}
	for queue := []engine.State{other.To}; len(queue) > 0; queue = queue[1:] {
		at := s.views[queue[0]]
		switch {
		case at == nil || seen[at.Name] || at.Stable || s.limits(at) && at != v:
			continue
		case at == v:
			return true
		}
		seen[at.Name] = true
		for i := range at.exits {
			if at.exits[i].leads {
				queue = append(queue, at.exits[i].To)
			}
		}
	}
	return false
}

// limits says that a state has an exit that gives up after retries, and whose time comes.
func (s *spin) limits(v *view) bool {
	return slices.ContainsFunc(v.exits, func(x wayOut) bool { return s.givesUp(&x) && s.outrun(v, &x) == nil })
}

// givesUp says that the guard of an exit asks for a number of retries: it never holds without any.
func (s *spin) givesUp(w *wayOut) bool {
	return s.Restrict(w.when.yes, s.counts[0]) == bdd.False && s.Restrict(w.when.yes, s.counts[len(s.counts)-1]) != bdd.False
}

// outrun is the exit by time alone that leaves the state before another's deadline; nil where there is none.
func (m *model) outrun(v *view, w *wayOut) *wayOut {
	if w.After == nil {
		return nil
	}
	for i := range v.exits {
		if other := &v.exits[i]; other.After != nil && other.When == nil && m.precedes(other, w) {
			return other
		}
	}
	return nil
}

// precedes says that the time of one exit has always come where another's has, and not the other way round.
func (m *model) precedes(one, other *wayOut) bool {
	return one.Rule != other.Rule && !m.Meet(m.domain, m.Without(other.due, one.due)) &&
		m.Meet(m.domain, m.Without(one.due, other.due))
}

// sooner holds where the state has been left by another exit before the time of this one comes.
func (s *spin) sooner(v *view, w *wayOut) bdd.Ref {
	left := bdd.False
	for i := range v.exits {
		if other := &v.exits[i]; s.precedes(other, w) {
			left = s.Or(left, other.when.yes)
		}
	}
	return left
}

// endedBy finds a round of moves that time alone makes for ever, and that the exit would end, by bringing the server to
// where moves come to an end, if its time came; nil where there is none. No operation is asked for on the way.
func (s *spin) endedBy(forever map[position]bdd.Ref, v *view, w *wayOut) ([]*hop, *Counterexample) {
	if v.Stable {
		return nil, nil
	}
	h := &hop{wayOut: w, from: v.Name, marks: s.marksAfter(w.Clears, s.stateOf(w.To).Marks)}
	for n := range slices.Backward(s.counts) {
		at := position{v.Name, n}
		would := s.arrived(s.And(w.due, s.Restrict(w.when.yes, s.counts[n])))
		goesOn := s.Restrict(s.arrived(forever[position{h.To, s.retries(h, n)}]), h.marks)
		ends := s.Without(s.withoutOperation(s.And(s.arrived(forever[at]), would)), goesOn)
		cycle, x := s.follow(forever, at, s.And(forever[at], s.entered, ends))
		if slices.ContainsFunc(cycle, func(step *hop) bool { return step.from == v.Name }) {
			return cycle, x
		}
	}
	return nil, nil
}
