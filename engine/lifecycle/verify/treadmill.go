// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"maps"
	"slices"
	"time"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/bdd"
)

// treadmill looks for servers that go round for ever though nothing happens but what the lifecycle itself asks for: their states do
// what they ensure, and time passes where servers do not rest. Nobody asks for an operation, no agent reports, and no claim
// comes or goes.
//
// Sets of facts here say nothing of the age: an exit without a deadline is taken as soon as its guard holds, and one with a
// deadline once there is nothing left to do.
type treadmill struct {
	*spin
	// exact says that only what can occur counts. Without that the search takes a fraction of the time, and finds too much.
	exact bool
	// quiet fixes what shows an operation, and age is the variables that ask for the age.
	quiet bdd.Fixed
	age   map[int]bool
	// begun holds right after a move, and lengths where every length of time is as usual; entry is all that holds right after a move.
	begun, lengths, entry bdd.Ref
	// reached remembers from which facts a move leads to others.
	reached map[bdd.Ref]bdd.Ref
	stays   map[engine.State]*stay
}

// stay is a state as a server passes through it.
type stay struct {
	*view
	within bdd.Ref
	exits  []*leg
	works  []work
	// done holds where no effect has anything left to do.
	done bdd.Ref
	// counts says that what its effects do depends on the retries.
	counts bool
}

// leg is an exit: where it is taken, by number of retries.
type leg struct {
	*hop
	taken []bdd.Ref
	// ever is the same without the answers to how many there were.
	ever bdd.Ref
}

// spinning are the errors that tell of moves without end already.
var spinning = []string{CodeLivelock, CodeDeadlineTooLate, CodeRetriesNotGrown, CodeDeadEnd, CodeUndecided}

// checkTreadmill warns of servers that go round for ever. Where moves follow each other without end anyway, that is told, and
// mended first.
func (s *spin) checkTreadmill() {
	if slices.ContainsFunc(s.findings, func(f Finding) bool { return f.Severity == diag.Error && slices.Contains(spinning, f.Code) }) {
		return
	}
	may := map[position]bdd.Ref{}
	for _, v := range s.order {
		for n := range s.counts {
			if n == 0 || !v.Stable { // a stable state begins the count anew
				may[position{v.Name, n}] = bdd.True
			}
		}
	}
	r := s.newTreadmill(false)
	r.trim()
	r.count()
	may = r.lasting(may)
	maps.DeleteFunc(may, func(_ position, f bdd.Ref) bool { return !s.Meet(f, s.entered) })
	if len(may) == 0 {
		return
	}
	r = s.newTreadmill(true)
	r.count()
	for range maxCycles {
		may = r.lasting(may)
		maps.DeleteFunc(may, func(_ position, f bdd.Ref) bool { return !s.Meet(f, r.entry) })
		if len(may) == 0 || s.Err() != nil || !r.tell(may) {
			return
		}
	}
}

// checkRounds is checkTreadmill where there is room for its diagrams. It does no more than warn, so that what was proven before stands
// where there is none.
func (s *spin) checkRounds() {
	proven, open := len(s.findings), len(s.open)
	s.checkTreadmill()
	if err := s.Err(); err != nil {
		s.findings, s.open = s.findings[:proven], append(s.open[:open], roundsUnknown+": "+err.Error())
	}
}

const roundsUnknown = "whether servers can go round for ever by what their states ensure was not found out"

func (s *spin) newTreadmill(exact bool) *treadmill {
	r := &treadmill{spin: s, exact: exact, quiet: bdd.Fixed{}, age: map[int]bool{}, begun: bdd.True, lengths: bdd.True,
		reached: map[bdd.Ref]bdd.Ref{}, stays: map[engine.State]*stay{}}
	for v := range s.asked {
		r.quiet[v] = false
	}
	if exact {
		r.lengths = s.usual()
		r.entry = r.calm(s.And(s.entered, r.lengths))
	}
	age, _ := s.words.Index(s.words.AgeFact)
	r.age = s.touched(map[int]bool{age: true})
	marks, _ := s.words.Index(s.words.MarksFact)
	for i := range s.anatomy.AfterMove {
		r.begun = s.And(r.begun, r.calm(s.outcome(&s.anatomy.AfterMove[i], "").yes))
	}
	for i := range s.anatomy.Axioms {
		if x := &s.anatomy.Axioms[i]; slices.Contains(x.Facts, marks) {
			r.begun = s.And(r.begun, r.calm(s.outcome(x, "").yes))
		}
	}
	for _, v := range s.order {
		r.stays[v.Name] = r.stay(v)
	}
	return r
}

// calm is f where nobody asks for an operation.
func (r *treadmill) calm(f bdd.Ref) bdd.Ref { return r.Restrict(f, r.quiet) }

func (r *treadmill) stay(v *view) *stay {
	st := &stay{view: v, within: bdd.True, done: bdd.True}
	if r.exact {
		st.within = r.Exists(r.calm(r.And(v.possible, r.assumed, r.lengths)), r.age)
	}
	for i := range v.effects {
		r.addWork(st, &v.effects[i])
	}
	for i := range v.exits {
		r.addLeg(st, &v.exits[i])
	}
	st.counts = slices.ContainsFunc(st.works, func(w work) bool { return r.depends(w.acts, r.counts[0]) })
	return st
}

// rest is how long a server stays in a stable state at least that is to rest there. A state that is left sooner by time alone
// gives it none; one that is left once a day may be what somebody wants.
const rest = time.Hour

// briefly says that an exit leaves its state by time alone before a server has rested there.
func briefly(w *wayOut) bool { return w.After != nil && w.After.Fact < 0 && w.After.Literal < rest }

// addLeg adds an exit that can be taken.
func (r *treadmill) addLeg(st *stay, w *wayOut) {
	taken := r.And(r.calm(w.taken), r.lengths)
	switch {
	case st.Stable && !briefly(w):
		taken = r.And(taken, r.atOnce)
	case w.After != nil:
		taken = r.And(r.Without(taken, r.calm(r.sooner(st.view, w))), st.done)
	}
	if taken = r.Exists(taken, r.age); taken == bdd.False || w.To == st.Name {
		return
	}
	l := &leg{ever: taken, hop: &hop{wayOut: w, from: st.Name, marks: r.marksAfter(w.Clears, r.stateOf(w.To).Marks)}}
	st.exits = append(st.exits, l)
}

// count tells where exits are taken by number of retries.
func (r *treadmill) count() {
	for _, v := range r.order {
		for _, l := range r.stays[v.Name].exits {
			counted := r.depends(l.ever, r.counts[0])
			for _, fixed := range r.counts {
				taken := l.ever
				if counted {
					taken = r.Restrict(taken, fixed)
				}
				l.taken = append(l.taken, taken)
			}
		}
	}
}

// lasting is, for each position, those of the given facts right after a move on which a server goes round for ever.
func (r *treadmill) lasting(of map[position]bdd.Ref) map[position]bdd.Ref {
	now, used := maps.Clone(of), map[position][]bdd.Ref{}
	for again := true; again && r.Err() == nil; {
		again = false
		for _, v := range r.order {
			st := r.stays[v.Name]
			for n := range slices.Backward(r.counts) {
				at := position{v.Name, n}
				before, some := now[at]
				if !some {
					continue
				}
				then := r.then(st, n, now)
				if last, known := used[at]; known && slices.Equal(then, last) {
					continue
				}
				used[at] = then
				next := r.And(of[at], r.goesOn(st, n, then))
				if now[at], again = next, again || next != before; next == bdd.False {
					delete(now, at)
				}
			}
		}
	}
	return now
}

// then is the facts to which each exit of a state has to lead, for a number of retries.
func (r *treadmill) then(st *stay, n int, now map[position]bdd.Ref) []bdd.Ref {
	then := make([]bdd.Ref, len(st.exits))
	for i, l := range st.exits {
		then[i] = now[position{l.To, r.retries(l.hop, n)}] // False where it is not there
	}
	return then
}

// goesOn is the facts in a state from which exits lead to those that are given.
func (r *treadmill) goesOn(st *stay, n int, then []bdd.Ref) bdd.Ref {
	leaves := bdd.False
	for i, l := range st.exits {
		if then[i] == bdd.False {
			continue
		}
		leaves = r.Or(leaves, r.leads(l, n, then[i]))
	}
	leaves = r.And(leaves, st.within)
	all := r.through(st, leaves)
	if st.counts {
		return r.Restrict(all, r.counts[n])
	}
	return all
}

// leads is where an exit is taken and leads to the facts that are given.
func (r *treadmill) leads(l *leg, n int, then bdd.Ref) bdd.Ref {
	if _, known := r.reached[then]; !known {
		r.reached[then] = r.Exists(r.And(then, r.begun), r.volatile)
	}
	return r.And(l.taken[n], r.Restrict(r.reached[then], l.marks))
}

// through is the facts in a state from which what it ensures leads to those that are given.
func (r *treadmill) through(st *stay, leaves bdd.Ref) bdd.Ref {
	all := leaves
	for range st.works {
		more := leaves
		for _, w := range st.works {
			more = r.Or(more, r.And(w.acts, st.within, r.Exists(r.Restrict(r.And(all, w.makes), w.marks), w.changes)))
		}
		if more == all {
			break
		}
		all = more
	}
	return all
}
