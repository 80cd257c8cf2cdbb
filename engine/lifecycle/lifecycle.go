// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"
	"slices"
	"time"

	"github.com/metalaw/metalaw/engine"
)

// Lifecycle is a compiled lifecycle. It is immutable and safe for concurrent use.
type Lifecycle struct {
	file       string
	language   *language
	vocabulary *engine.Vocabulary
	initial    engine.State
	atoms      []*atom
	order      []engine.State
	states     map[engine.State]*state
	invariants []*invariant
	migrate    map[engine.State]engine.State
	migrateAt  map[engine.State]Place
	initialAt  Place
	says       map[string]string
	safety     *safety

	stateFact, ageFact, marksFact int
}

type state struct {
	name       engine.State
	at         Place
	means      string
	stable     bool
	marks      []string
	operations []string
	// operationsAt are the places of operations.
	operationsAt []Place
	ensure       []*ensured
	// stays is what must hold while a server stays here, whichever of the effects it wants.
	stays []staying
	// exits holds the interrupts that apply, then the state's own exits: the order in which they are tried.
	exits []*exit
}

type ensured struct {
	effect engine.Effect
	kind   engine.EffectType
	at     Place
	when   *guard
}

type exit struct {
	rule      string
	at        Place
	to        engine.State
	when      *guard
	after     *deadline
	retry     bool
	clears    []string
	groups    []string
	interrupt bool
}

// deadline is a literal length of time, or a duration fact.
type deadline struct {
	literal time.Duration
	fact    int
	at      Place
}

func (d *deadline) length(f engine.Facts) (time.Duration, bool) {
	if d.fact < 0 {
		return d.literal, true
	}
	v := f.Fact(d.fact)
	return v.Duration(), !v.Missing()
}

type invariant struct {
	rule string
	at   Place
	must *guard
}

// Initial is the state in which a server without a state starts.
func (l *Lifecycle) Initial() engine.State { return l.initial }

// States lists the states in the order in which the author wrote them.
func (l *Lifecycle) States() []engine.State { return slices.Clone(l.order) }

// Defines says whether the lifecycle has the state.
func (l *Lifecycle) Defines(s engine.State) bool {
	_, ok := l.states[s]
	return ok
}

// Stable says whether a server may rest in the state; false for a state that the lifecycle does not have.
func (l *Lifecycle) Stable(s engine.State) bool {
	st, ok := l.states[s]
	return ok && st.stable
}

// Says is what the author has a server tell that the rule has led to where it is: cause and remedy; empty where nothing is
// said of the rule.
func (l *Lifecycle) Says(rule string) string { return l.says[rule] }

// Means is the sentence that the author gave the state; empty for a state that the lifecycle does not have.
func (l *Lifecycle) Means(s engine.State) string {
	if st, ok := l.states[s]; ok {
		return st.means
	}
	return ""
}

// Accepts says whether the state can use an operation.
func (l *Lifecycle) Accepts(s engine.State, operation string) bool {
	st, ok := l.states[s]
	return ok && slices.Contains(st.operations, operation)
}

// Ensures says whether the state ensures an effect at some time, whatever holds now.
func (l *Lifecycle) Ensures(s engine.State, effect string) bool {
	st, ok := l.states[s]
	return ok && slices.ContainsFunc(st.ensure, func(e *ensured) bool { return e.effect.Name == effect })
}

// Migrates returns the state that takes the place of one that the lifecycle has dropped.
func (l *Lifecycle) Migrates(s engine.State) (engine.State, bool) {
	to, ok := l.migrate[s]
	return to, ok
}

// HasEdge says whether some rule leads from one state to another. From an empty state the initial state, every state that
// the initial state's exits lead to, and those that are resumed can be reached.
func (l *Lifecycle) HasEdge(from, to engine.State) bool {
	if from == "" {
		if to == l.initial || (l.states[to] != nil && slices.Contains(slices.Collect(maps.Values(l.vocabulary.Resumes)), to)) {
			return true
		}
		from = l.initial
	}
	if target, ok := l.migrate[from]; ok && target == to {
		return true
	}
	st, ok := l.states[from]
	if !ok {
		return false
	}
	return slices.ContainsFunc(st.exits, func(e *exit) bool { return e.to == to })
}

// Edge is one way out of a state.
type Edge struct {
	From, To  engine.State
	Rule      string
	When      string
	After     string
	Retry     bool
	Clears    []string
	Interrupt bool
}

// Edges lists every way out of every state, interrupts first, in the order in which they are tried.
func (l *Lifecycle) Edges() []Edge {
	var edges []Edge
	for _, name := range l.order {
		for _, e := range l.states[name].exits {
			edge := Edge{From: name, To: e.to, Rule: e.rule, Retry: e.retry, Clears: e.clears, Interrupt: e.interrupt}
			if e.when != nil {
				edge.When = e.when.source
			}
			if e.after != nil {
				edge.After = l.deadlineText(e.after)
			}
			edges = append(edges, edge)
		}
	}
	return edges
}

func (l *Lifecycle) deadlineText(d *deadline) string {
	if d.fact >= 0 {
		return l.vocabulary.Facts[d.fact].Name
	}
	return d.literal.String()
}

// Reads lists the vocabulary positions of every fact that a decision in the state can depend on, the safety rules'
// facts included. It is what an exhaustive check has to vary.
func (l *Lifecycle) Reads(s engine.State) []int {
	st, ok := l.states[s]
	if !ok {
		return nil
	}
	facts := []int{l.marksFact, l.ageFact}
	addGuard := func(g *guard) {
		for _, a := range g.atoms(nil) {
			facts = append(facts, l.atoms[a].facts...)
		}
	}
	for _, e := range st.exits {
		addGuard(e.when)
		if e.after != nil && e.after.fact >= 0 {
			facts = append(facts, e.after.fact)
		}
		facts = append(facts, l.safety.readsOfMove(st.name, l.states[e.to], e)...)
	}
	for _, e := range st.ensure {
		addGuard(e.when)
		facts = append(facts, l.safety.readsOfEffect(e.effect.Name)...)
	}
	for _, s := range st.stays {
		facts = append(facts, readsOf(s.requirements)...)
	}
	for _, i := range l.invariants {
		addGuard(i.must)
	}
	slices.Sort(facts)
	return slices.Compact(facts)
}
