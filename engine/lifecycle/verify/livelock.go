// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/bdd"
)

const (
	// maxRetries is up to which number retries are counted exactly; beyond it they are any number.
	maxRetries = 12
	// maxCycles bounds how many livelocks are told.
	maxCycles = 16
)

// spin looks for moves that follow each other for ever while nothing outside changes and no time passes. What a move
// itself changes is taken along: marks, retries, an operation that it serves, the age, and what the vocabulary says.
type spin struct {
	*checker
	// entered holds on the facts right after a move, and volatile are the variables that a move may change.
	entered  bdd.Ref
	volatile map[int]bool
	// counts fixes the comparisons of the retries for each number of them; one entry that fixes nothing where no rule asks.
	counts []bdd.Fixed
	// asks are the variables of the operation, all false where there is none, by word of its name.
	asked map[int]bool
	// hops are the moves that can fire right after a move, by state.
	hops  map[engine.State][]*hop
	after map[bdd.Ref]bdd.Ref
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

func (c *checker) checkLivelock() {
	s := &spin{checker: c, after: map[bdd.Ref]bdd.Ref{}, hops: map[engine.State][]*hop{}}
	s.enter()
	s.count()
	s.ask()
	for _, v := range c.order {
		for i := range v.exits {
			if h := s.hop(v, &v.exits[i]); h != nil {
				s.hops[v.Name] = append(s.hops[v.Name], h)
			}
		}
	}
	told := map[string]bool{}
	for range maxCycles {
		forever := s.forever(nil)
		at, ok := s.start(forever)
		if !ok || c.Err() != nil {
			return
		}
		cycle, x := s.follow(forever, at)
		if len(cycle) == 0 {
			c.open = append(c.open, "whether moves can follow each other for ever was not found out: too much depends on each other")
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
	age, _ := s.words.Index(s.words.AgeFact)
	changed := map[int]bool{age: true}
	s.entered = s.And(s.domain, s.assumed)
	for i := range s.anatomy.AfterMove {
		x := &s.anatomy.AfterMove[i]
		s.entered = s.And(s.entered, s.outcome(x, "").yes)
		for _, f := range x.Facts {
			changed[f] = true
		}
	}
	for _, g := range s.groups {
		if at := slices.Index(g.facts, age); at >= 0 {
			s.entered = s.And(s.entered, g.possible(s.Manager, func(values []int64) bool { return values[at] == 0 }))
		}
	}
	s.volatile = map[int]bool{}
	for _, p := range s.primitives {
		if !s.changes(p, changed) {
			continue
		}
		if p.kind == isWord {
			for _, w := range s.vocables[p.fact] {
				s.volatile[w.variable] = true
			}
			continue
		}
		s.volatile[p.variable] = true
		if p.failure >= 0 {
			s.volatile[p.failure] = true
		}
	}
}

// changes says whether a question reads a fact that a move may change. Of an opaque one that reads the retries nobody can
// tell how it goes on.
func (s *spin) changes(p *primitive, changed map[int]bool) bool {
	switch p.kind {
	case isCompared:
		return changed[p.left.fact] || (p.right.fact >= 0 && changed[p.right.fact])
	case isOpaque:
		return slices.ContainsFunc(p.reads, func(f int) bool { return changed[f] || s.words.Facts[f].Name == s.words.RetriesFact })
	default:
		return changed[p.fact]
	}
}

// count finds the numbers of retries that rules tell apart.
func (s *spin) count() {
	s.counts = []bdd.Fixed{{}}
	fact, ok := s.words.Index(s.words.RetriesFact)
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
			s.open = append(s.open, "retries are not counted in the search for livelocks: they are compared with more than small numbers")
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

// ask collects the variables by which an operation shows.
func (s *spin) ask() {
	s.asked = map[int]bool{}
	for _, name := range s.words.OperationFacts {
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
	fixed := bdd.Fixed{}
	for v := range s.asked {
		if !s.volatile[v] {
			fixed[v] = false
		}
	}
	return s.Restrict(f, fixed)
}

// hop is the move as it is made right after another; nil where that cannot be.
func (s *spin) hop(v *view, w *wayOut) *hop {
	fires := s.And(s.Without(w.fires, w.breached), s.entered)
	if fires == bdd.False || w.To == v.Name {
		return nil
	}
	to := s.stateOf(w.To)
	h := &hop{wayOut: w, from: v.Name, marks: s.marksAfter(w.Clears, to.Marks), refused: bdd.False}
	for _, fixed := range s.counts {
		f := s.Restrict(fires, fixed)
		h.fires = append(h.fires, f)
		h.serves = append(h.serves, s.Without(f, s.withoutOperation(f)))
	}
	if len(s.words.OperationFacts) > 0 {
		at, _ := s.words.Index(s.words.OperationFacts[0])
		for _, word := range s.vocables[at] {
			if !slices.Contains(to.Operations, word.word) {
				h.refused = s.Or(h.refused, s.Var(word.variable))
			}
		}
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

// start is the position with the simplest facts on which moves follow each other without end.
func (s *spin) start(forever map[position]bdd.Ref) (position, bool) {
	for _, v := range s.order {
		for n := range s.counts {
			if at := (position{v.Name, n}); forever[at] != bdd.False {
				return at, true
			}
		}
	}
	return position{}, false
}

// walk is the moves from a position on, each with the facts on which it was made.
type walk struct {
	hops     []*hop
	examples []*Counterexample
}

// round is the moves from the i-th on, which lead back to where it began.
func (w *walk) round(i int) ([]*hop, *Counterexample) {
	x := w.examples[i]
	for k, h := range w.hops[i:] {
		x.Confirmed = x.Confirmed && w.examples[i+k].Confirmed
		x.Cycle = append(x.Cycle, Step{h.from, h.Rule, h.To})
	}
	return w.hops[i:], x
}

// follow walks from a position until it comes to one, with the same facts, where it was before.
func (s *spin) follow(forever map[position]bdd.Ref, at position) ([]*hop, *Counterexample) {
	type visit struct {
		position
		facts string
	}
	seen := map[visit]int{}
	w := &walk{}
	assignment, ok := s.Cheapest(forever[at], s.weights)
	for ok {
		key := visit{at, s.lasting(assignment)}
		if first, known := seen[key]; known {
			return w.round(first)
		}
		seen[key] = len(w.hops)
		h := s.taken(at, assignment)
		if h == nil {
			break
		}
		w.hops, w.examples = append(w.hops, h), append(w.examples, s.decided(h, at, assignment))
		kept := s.kept(h, at, assignment)
		at = position{h.To, s.retries(h, at.retries)}
		if assignment, ok = s.Cheapest(s.Restrict(s.And(forever[at], s.entered), kept), s.weights); ok {
			for v, value := range kept {
				assignment[v] = value
			}
		}
	}
	return nil, nil
}

// kept is what stays of an assignment over a move: all but what the move changes, with the marks as it leaves them.
func (s *spin) kept(h *hop, at position, assignment []bool) bdd.Fixed {
	ends := s.Holds(h.serves[at.retries], assignment) || s.Holds(h.refused, assignment)
	kept := bdd.Fixed{}
	for v, value := range assignment {
		if !s.volatile[v] {
			kept[v] = value && (!ends || !s.asked[v])
		}
	}
	for v := range s.counts[0] {
		delete(kept, v) // the comparisons of the retries follow from the position
	}
	for v, value := range h.marks {
		kept[v] = value
	}
	return kept
}

// lasting is the part of an assignment that a move does not change by itself.
func (s *spin) lasting(assignment []bool) string {
	text := make([]byte, len(assignment))
	for v, value := range assignment {
		if _, counted := s.counts[0][v]; value && !counted && !s.volatile[v] {
			text[v] = 1
		}
	}
	return string(text)
}

func (s *spin) taken(at position, assignment []bool) *hop {
	for _, h := range s.hops[at.state] {
		if s.Holds(h.fires[at.retries], assignment) {
			return h
		}
	}
	return nil
}

// decided has the lifecycle decide on the facts of an assignment, and says whether it makes the move.
func (s *spin) decided(h *hop, at position, assignment []bool) *Counterexample {
	assignment = slices.Clone(assignment)
	for v, value := range s.counts[at.retries] {
		assignment[v] = value
	}
	facts, exact := s.facts(h.fires[at.retries], assignment, at.state)
	d := s.lifecycle.Decide(facts)
	return &Counterexample{State: at.state, Path: s.paths[at.state], Given: s.given(facts), Decision: d,
		Confirmed: exact && d.Moves() && d.Rule == h.Rule}
}

func (s *spin) tell(cycle []*hop, x *Counterexample) {
	severity := diag.Error
	if !x.Confirmed {
		severity = diag.Warning
	}
	h := cycle[0]
	s.add(severity, CodeLivelock, h.At, h.Rule, x, hintOf(x, "let one of the guards ask for something that the move before it changes"),
		"while nothing outside changes, moves follow each other without end: %s", cycleWords(cycle))
}

// cycleWords tells a cycle from its least rule on, so that one cycle has one text.
func cycleWords(cycle []*hop) string {
	least := 0
	for i, h := range cycle {
		if h.Rule < cycle[least].Rule {
			least = i
		}
	}
	var b strings.Builder
	for i := range cycle {
		h := cycle[(least+i)%len(cycle)]
		fmt.Fprintf(&b, "%s -%s-> ", h.from, h.Rule)
	}
	return b.String() + string(cycle[least].from)
}

// forget takes the facts by which exactly this cycle is followed out of its first move, so that others can be found.
func (s *spin) forget(cycle []*hop) {
	forever := s.forever(cycle)
	h := cycle[0]
	for n := range s.counts {
		h.fires[n] = s.Without(h.fires[n], forever[position{h.from, n}])
	}
}
