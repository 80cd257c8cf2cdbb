// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"slices"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/bdd"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

const (
	// maxRetries is up to which number retries are counted exactly; beyond it they are any number.
	maxRetries = 100
	// maxCycles bounds how many livelocks are reported.
	maxCycles = 16
)

// spin looks for moves that follow each other for ever while nothing outside changes and no time passes. What a move
// itself changes is taken along: marks, retries, an operation that it serves, the age, and what the vocabulary says.
type spin struct {
	*checker
	// entered holds on the facts right after a move, and volatile are the variables that a move may change.
	entered  bdd.Ref
	volatile map[int]bool
	// passes says that time passes in states that are not stable: entered then holds at any age, and atOnce where it is zero.
	passes bool
	atOnce bdd.Ref
	// counts fixes the comparisons of the retries for each number of them; one entry that fixes nothing where no rule asks.
	counts []bdd.Fixed
	// asks are the variables of the operation, all false where there is none, by word of its name.
	asked map[int]bool
	// hops are the moves that can fire right after a move, by state.
	hops map[engine.State][]*hop
	// after and unasked remember what arrived and withoutOperation made.
	after, unasked map[bdd.Ref]bdd.Ref
}

// hop is one move right after another.
type hop struct {
	*wayOut
	from engine.State
	// fires is where it is taken, by number of retries; serves where it would not be without the operation.
	fires  []bdd.Ref
	serves []bdd.Ref
	marks  bdd.Fixed
	// refused holds where the target does not accept the operation asked for.
	refused bdd.Ref
}

// position is a state with a number of retries.
type position struct {
	state   engine.State
	retries int
}

// unproven is an error: what could not be searched may hide moves without end, and a lifecycle is accepted only where there
// are none.
func (c *checker) unproven(why string) {
	c.open = append(c.open, why)
	c.findings = append(c.findings, undecided(c.ast, why))
}

// newSpin prepares a search for moves without end. Where time passes, it does so in states that are not stable alone: in the
// others a server rests.
func (c *checker) newSpin(passes bool) *spin {
	s := &spin{checker: c, passes: passes, after: map[bdd.Ref]bdd.Ref{}, unasked: map[bdd.Ref]bdd.Ref{}, hops: map[engine.State][]*hop{}}
	s.enter()
	s.count()
	s.ask()
	for _, v := range c.order {
		entered := s.And(s.entered, v.possible)
		if s.passes && v.Stable {
			entered = s.And(entered, s.atOnce)
		}
		for i := range v.exits {
			if h := s.hop(v, &v.exits[i], entered); h != nil {
				s.hops[v.Name] = append(s.hops[v.Name], h)
			}
		}
	}
	return s
}

func (s *spin) checkLivelock() {
	s.checkDestinations()
	told := map[string]bool{}
	for range maxCycles {
		forever := s.forever(nil)
		at, ok := s.start(forever)
		if !ok || s.Err() != nil {
			return
		}
		cycle, x := s.follow(forever, at, forever[at])
		if len(cycle) == 0 {
			s.unproven("whether moves can follow each other for ever was not found out: too much depends on each other")
			return
		}
		if words := cycleWords(cycle); !told[words] {
			told[words] = true
			s.tell(cycle, x)
		}
		s.forget(cycle)
	}
}

// enter finds what holds right after a move: the age is zero, and what the vocabulary says of the facts that change then.
func (s *spin) enter() {
	age, _ := s.words.Index(engine.FactAge)
	changed := map[int]bool{age: true}
	s.entered = s.And(s.domain, s.assumed)
	for _, x := range s.safety.AfterMove {
		s.entered = s.And(s.entered, s.outcome(x, "").yes)
		for _, f := range x.Facts {
			changed[f] = true
		}
	}
	s.atOnce = bdd.True
	for _, g := range s.groups {
		if at := slices.Index(g.facts, age); at >= 0 {
			s.atOnce = s.And(s.atOnce, g.possible(s.Manager, func(values []int64) bool { return values[at] == 0 }))
		}
	}
	if s.passes {
		s.entered = s.And(s.entered, s.usual())
	} else {
		s.entered = s.And(s.entered, s.atOnce)
	}
	s.volatile = s.touched(changed)
}

// touched is the variables that may change with some facts.
func (s *spin) touched(changed map[int]bool) map[int]bool {
	touched := map[int]bool{}
	for _, p := range s.primitives {
		if !s.changes(p, changed) {
			continue
		}
		if p.kind == isWord {
			for _, w := range s.vocables[p.fact] {
				touched[w.variable] = true
			}
			continue
		}
		touched[p.variable] = true
		if p.failure >= 0 {
			touched[p.failure] = true
		}
	}
	return touched
}

// usual holds where every length of time that a fact holds is the one that it has where nothing is known.
func (s *spin) usual() bdd.Ref {
	usual := bdd.True
	for _, g := range s.groups {
		usual = s.And(usual, g.possible(s.Manager, func(values []int64) bool {
			for i, f := range g.facts {
				if s.words.Facts[f].Kind == engine.Duration && values[i] != numberOf(s.quiet[f]) {
					return false
				}
			}
			return true
		}))
	}
	return usual
}

// changes says whether a question reads a fact that a move may change. Of an opaque one that reads the state, the marks, the
// retries or an operation it is unknown how it goes on.
func (s *spin) changes(p *primitive, changed map[int]bool) bool {
	switch p.kind {
	case isCompared:
		return changed[p.left.fact] || (p.right.fact >= 0 && changed[p.right.fact])
	case isOpaque:
		return slices.ContainsFunc(p.reads, func(f int) bool { return changed[f] || s.moves(s.words.Facts[f].Name) })
	default:
		return changed[p.fact]
	}
}

// moves says whether a fact is part of a lifecycle's position, or of an operation that a move may serve.
func (s *spin) moves(fact string) bool {
	return fact == engine.FactState || fact == engine.FactMarks || fact == engine.FactRetries ||
		slices.Contains(engine.OperationFacts, fact)
}

// count finds the numbers of retries that rules distinguish.
func (s *spin) count() {
	s.counts = []bdd.Fixed{{}}
	fact, ok := s.words.Index(engine.FactRetries)
	if !ok {
		return
	}
	var comparisons []*primitive
	highest := int64(0)
	for _, p := range s.primitives {
		if p.kind != isCompared || (p.left.fact != fact && p.right.fact != fact) {
			continue
		}
		if p.right.fact >= 0 || p.right.literal > maxRetries {
			s.uncounted(p)
			return
		}
		comparisons, highest = append(comparisons, p), max(highest, p.right.literal+1)
	}
	if len(comparisons) == 0 {
		return
	}
	s.counts = nil
	for n := range highest + 1 {
		fixed := bdd.Fixed{}
		for _, p := range comparisons {
			fixed[p.variable] = p.op.holds(n, p.right.literal) != p.flipped
		}
		s.counts = append(s.counts, fixed)
	}
}

// uncounted reports the first definition that compares the retries with what they are not counted up to.
func (s *spin) uncounted(p *primitive) {
	what := fmt.Sprintf("a number above %d", maxRetries)
	if p.right.fact >= 0 {
		other := p.left.fact
		if s.words.Facts[other].Name == engine.FactRetries {
			other = p.right.fact
		}
		what = s.words.Facts[other].Name
	}
	why := fmt.Sprintf("whether moves can follow each other for ever was not found out: %s is compared with %s", engine.FactRetries, what)
	d := s.definitionOf(p)
	s.open = append(s.open, why)
	s.add(diag.Error, CodeUndecided, d.At, d.Name, nil, fmt.Sprintf("compare it with a number of at most %d", maxRetries), "%s", why)
}

// definitionOf is the first definition that asks a question.
func (e *encoder) definitionOf(p *primitive) *lifecycle.Expression {
	for _, d := range e.ast.Definitions {
		if e.asks(e.forms[d].form, p) {
			return d
		}
	}
	return &lifecycle.Expression{}
}

func (e *encoder) asks(f *form, p *primitive) bool {
	return (f.op == formPrimitive && e.primitives[f.primitive] == p) ||
		slices.ContainsFunc(f.kids, func(kid *form) bool { return e.asks(kid, p) })
}

// ask collects the variables by which an operation shows.
func (s *spin) ask() {
	s.asked = map[int]bool{}
	for _, name := range engine.OperationFacts {
		at, _ := s.words.Index(name)
		for _, w := range s.vocables[at] {
			s.asked[w.variable] = true
		}
		for _, p := range s.primitives {
			if (p.kind == isTrue && p.fact == at) || (p.kind == isCompared && (p.left.fact == at || p.right.fact == at)) {
				s.asked[p.variable] = true
			}
		}
	}
}

// withoutOperation is f where no operation is asked for. Comparisons with the entry are left to what holds after a move.
func (s *spin) withoutOperation(f bdd.Ref) bdd.Ref {
	if r, ok := s.unasked[f]; ok {
		return r
	}
	fixed := bdd.Fixed{}
	for v := range s.asked {
		if !s.volatile[v] {
			fixed[v] = false
		}
	}
	r := s.Restrict(f, fixed)
	s.unasked[f] = r
	return r
}

// hop is the move as it is made right after another, by which the state was entered; nil where that cannot be.
func (s *spin) hop(v *view, w *wayOut, entered bdd.Ref) *hop {
	taken := w.taken
	if s.passes && !v.Stable {
		taken = s.Without(taken, s.sooner(v, w))
	}
	fires := s.And(taken, entered)
	if fires == bdd.False || w.To == v.Name {
		return nil
	}
	to := s.stateOf(w.To)
	h := &hop{wayOut: w, from: v.Name, marks: s.marksAfter(w.Clears, to.Marks), refused: s.unlisted(to)}
	counted := s.Restrict(fires, s.counts[0]) != fires
	for _, fixed := range s.counts {
		f := fires
		if counted {
			f = s.Restrict(fires, fixed)
		}
		h.fires = append(h.fires, f)
		h.serves = append(h.serves, s.Without(f, s.withoutOperation(f)))
	}
	return h
}

// retries is the number of retries after the move.
func (s *spin) retries(h *hop, now int) int {
	switch {
	case s.stateOf(h.To).Stable:
		return 0
	case h.Retry:
		return min(now+1, len(s.counts)-1)
	default:
		return now
	}
}

// before is where a move leads to facts of the target on which then holds.
func (s *spin) before(h *hop, retries int, then bdd.Ref) bdd.Ref {
	arrived := s.arrived(then)
	ends := s.Or(h.serves[retries], h.refused)
	kept := s.Restrict(arrived, h.marks)
	ended := s.Restrict(s.withoutOperation(arrived), h.marks)
	return s.And(h.fires[retries], s.Ite(ends, ended, kept))
}

// arrived is where facts can turn, by a move, into such on which then holds.
func (s *spin) arrived(then bdd.Ref) bdd.Ref {
	if r, ok := s.after[then]; ok {
		return r
	}
	r := s.Exists(s.And(then, s.entered), s.volatile)
	s.after[then] = r
	return r
}

// forever is, for each position, the facts on which moves follow each other without end; over the given moves only, or all.
func (s *spin) forever(only []*hop) map[position]bdd.Ref {
	now := map[position]bdd.Ref{}
	for _, v := range s.order {
		for n := range s.counts {
			now[position{v.Name, n}] = bdd.True
		}
	}
	for again := true; again && s.Err() == nil; {
		again = false
		for _, v := range s.order {
			for n := range s.counts {
				next := bdd.False
				for _, h := range s.hops[v.Name] {
					if then := now[position{h.To, s.retries(h, n)}]; then != bdd.False && (only == nil || slices.Contains(only, h)) {
						next = s.Or(next, s.before(h, n, then))
					}
				}
				if at := (position{v.Name, n}); next != now[at] {
					now[at], again = next, true
				}
			}
		}
	}
	return now
}
