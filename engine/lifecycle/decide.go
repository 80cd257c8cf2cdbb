// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/celrule"
)

// Decide evaluates the state that the facts name. It is pure and total: a guard that errors, a fact that is missing or a
// rule of safety that would be broken halts the decision, and then nothing moves and nothing is ensured.
func (l *Lifecycle) Decide(f engine.Facts) engine.Decision { return l.evaluate(f, nil) }

// Explain decides like Decide and records every guard with the values of its atoms, at several times the cost.
func (l *Lifecycle) Explain(f engine.Facts) engine.Decision {
	trace := engine.Trace{}
	d := l.evaluate(f, &trace)
	d.Trace = trace
	return d
}

// MarksAhead are the marks that the state which a move enters stores before its first effects, by the facts of the move.
func (l *Lifecycle) MarksAhead(f engine.Facts, move engine.Decision) []string {
	entered := l.evaluate(changed{f, l.stateFact, engine.EnumValue(string(move.To))}, nil)
	var marks []string
	for _, e := range entered.Effects {
		if e.Name == engine.MarkEffect {
			marks = append(marks, e.Param("mark").Text())
		}
	}
	return marks
}

// Start decides where a server without a state begins: in the initial state, or where that state's exits lead at once.
// The move is From "" To that state, and Rule is empty where no exit led there. It halts where even the initial state may
// not be entered. A server that is to resume a state begins in that one, and is halted where there is no such state.
func (l *Lifecycle) Start(f engine.Facts) engine.Decision {
	resumed, resumes := l.resumed(f)
	if resumes && l.states[resumed] == nil {
		return halted(l.stateOf(f), engine.HaltUnknownState, "", fmt.Sprintf("the server was in %s, and the revision defines no such state", resumed))
	}
	d := l.Decide(changed{f, l.stateFact, engine.EnumValue(string(l.ast.Initial))})
	if resumes && (d.Halt != nil || d.To != resumed) {
		return l.begin(f, l.states[resumed], l.states[resumed].Marks)
	}
	if d.Halt != nil || !d.Moves() {
		st := l.states[l.ast.Initial]
		return l.begin(f, st, st.Marks)
	}
	d.From = ""
	return d
}

// resumed is the state that a server without a state was in before, by what is known otherwise; false where nothing is.
func (l *Lifecycle) resumed(f engine.Facts) (engine.State, bool) {
	for fact, name := range l.vocabulary.Resumes {
		if i, ok := l.vocabulary.Index(fact); ok && f.Fact(i).Kind() == engine.Bool && f.Fact(i).Bool() {
			return name, true
		}
	}
	return "", false
}

// Enter decides whether a server may take up a state to which no rule of this lifecycle led it, because another program
// left it there. It is checked like a move to that state. The move is From "" To that state, without a rule and without
// the state's marks: the caller knows what history such a server has.
func (l *Lifecycle) Enter(f engine.Facts, to engine.State) engine.Decision {
	st, ok := l.states[to]
	if !ok {
		return halted(l.stateOf(f), engine.HaltUnknownState, "", fmt.Sprintf("the revision defines no state %q", to))
	}
	return l.begin(f, st, nil)
}

// begin is a move into a state that no rule asked for. The safety rule that it would break takes the place of the rule.
func (l *Lifecycle) begin(f engine.Facts, to *State, marks []string) engine.Decision {
	in := activation{vocabulary: l.vocabulary, facts: f}
	if b := afterwards(l.safety.Enter[to.Name], nil, marks, &in); b != nil {
		return halted(l.stateOf(f), engine.HaltSafety, b.requirement.Rule, b.message(fmt.Sprintf("beginning in %s", to.Name)))
	}
	return engine.Decision{To: to.Name, Message: to.Means, Marks: marks, Stable: to.Stable}
}

func (l *Lifecycle) stateOf(f engine.Facts) engine.State {
	return engine.State(f.Fact(l.stateFact).Text())
}

// changed is facts of which one has another value.
type changed struct {
	engine.Facts
	fact int
	to   engine.Value
}

// Fact implements engine.Facts.
func (c changed) Fact(i int) engine.Value {
	if i == c.fact {
		return c.to
	}
	return c.Facts.Fact(i)
}

func (l *Lifecycle) evaluate(f engine.Facts, trace *engine.Trace) engine.Decision {
	from := l.stateOf(f)
	if target, ok := l.ast.Migrate[from]; ok {
		return l.migrated(f, from, l.states[target])
	}
	st, ok := l.states[from]
	if !ok {
		return halted(from, engine.HaltUnknownState, "", fmt.Sprintf("the revision defines no state %q", from))
	}
	e := borrow(l, st, f)
	defer e.giveBack()
	e.trace = trace
	if d, decided := e.exits(); decided {
		return d
	}
	return e.ensure()
}

// RuleMigrated is the rule of a move out of a state that the lifecycle has dropped.
const RuleMigrated = "Migrated"

func (l *Lifecycle) migrated(f engine.Facts, from engine.State, to *State) engine.Decision {
	in := activation{vocabulary: l.vocabulary, facts: f}
	b := firstBreach(l.safety.Leave[from], &in)
	if b == nil {
		b = afterwards(l.safety.Enter[to.Name], nil, to.Marks, &in)
	}
	if b != nil {
		return halted(from, engine.HaltSafety, RuleMigrated, b.message(fmt.Sprintf("%s (%s to %s)", RuleMigrated, from, to.Name)))
	}
	return engine.Decision{From: from, To: to.Name, Rule: RuleMigrated, Message: to.Means, Marks: to.Marks,
		Stable: to.Stable, ResetRetries: to.Stable}
}

func halted(at engine.State, cause engine.HaltCause, rule, message string) engine.Decision {
	return engine.Decision{From: at, To: at, Message: message, Halt: &engine.Halt{Cause: cause, Rule: rule, Message: message}}
}

// ensuredNow is an effect that the state wants now.
type ensuredNow struct {
	*Ensured
	// open is the safety rule that the effect still waits for; nil where it waits for none.
	open *Requirement
}

// evaluation is one decision in progress. Each atom is evaluated at most once.
type evaluation struct {
	l      *Lifecycle
	state  *State
	in     activation
	values [maxAtoms]celrule.Truth
	// answers are those of the safety rules; in has them.
	answers [maxAnswers]celrule.Truth
	err     error
	active  []ensuredNow
	// wanted has a bit for each active one, by its place in the state's Ensure.
	wanted uint
	trace  *engine.Trace
	// goesOn says that a guard which cannot be evaluated does not end the search for a way out.
	goesOn bool

	wake         time.Duration
	deadline     time.Duration
	deadlineRule string
}

// evaluations are used again: a decision is made far more often than it has anything to say.
var evaluations = sync.Pool{New: func() any { return new(evaluation) }}

func borrow(l *Lifecycle, st *State, f engine.Facts) *evaluation {
	e := evaluations.Get().(*evaluation) //nolint:forcetypeassert // nothing else is put there
	e.l, e.state, e.in = l, st, activation{vocabulary: l.vocabulary, facts: f, answers: e.answers[:]}
	return e
}

// giveBack forgets everything: no decision may see a value of another.
func (e *evaluation) giveBack() {
	active := e.active[:0]
	clear(e.active)
	*e = evaluation{active: active}
	evaluations.Put(e)
}

// atom is the value of a definition.
func (e *evaluation) atom(i int) celrule.Truth {
	if v := e.values[i]; v != celrule.Unknown {
		return v
	}
	a := e.l.ast.Definitions[i]
	value, err := a.evaluate(&e.in)
	if err != nil {
		e.err = err
		e.values[i] = celrule.Failed
		return celrule.Failed
	}
	for _, age := range a.ages {
		e.wakeAt(age.at - e.in.facts.Fact(age.fact).Duration())
	}
	e.values[i] = celrule.TruthOf(value)
	return e.values[i]
}

func (e *evaluation) ensuring(effect string) bool {
	return slices.ContainsFunc(e.active, func(a ensuredNow) bool { return a.Effect.Name == effect })
}

func (e *evaluation) acting() bool {
	return slices.ContainsFunc(e.active, func(a ensuredNow) bool { return a.Kind.Touches })
}

// wakeAt notes a moment at which time alone may change the decision; moments that have passed do not count.
func (e *evaluation) wakeAt(in time.Duration) {
	if in > 0 && (e.wake == 0 || in < e.wake) {
		e.wake = in
	}
}

// exits tries the interrupts and exits in order.
func (e *evaluation) exits() (engine.Decision, bool) {
	age := e.in.facts.Fact(e.l.ageFact)
	for _, x := range e.state.Exits {
		if x.After != nil {
			length, known := x.After.length(e.in.facts)
			if !known || age.Missing() {
				return halted(e.state.Name, engine.HaltGuardError, x.Rule,
					fmt.Sprintf("the deadline of %s is unknown: a duration is missing", x.Rule)), true
			}
			if remaining := length - age.Duration(); remaining > 0 {
				e.wakeAt(remaining)
				if e.deadline == 0 || remaining < e.deadline {
					e.deadline, e.deadlineRule = remaining, x.Rule
				}
				e.record("exit", x.Rule, x.When, "waiting", remaining)
				continue
			}
		}
		result := celrule.True
		if x.When != nil {
			result = x.When.evaluate(e)
		}
		e.record(exitKind(x), x.Rule, x.When, result.String(), 0)
		switch result {
		case celrule.Failed:
			if e.goesOn {
				continue
			}
			return halted(e.state.Name, engine.HaltGuardError, x.Rule, fmt.Sprintf("the guard of %s cannot be evaluated: %v", x.Rule, e.err)), true
		case celrule.True:
			return e.move(x), true
		case celrule.Unknown, celrule.False:
			// this way out is closed: the next is tried
		}
	}
	return engine.Decision{}, false
}

func exitKind(x *Exit) string {
	if x.Interrupt {
		return "interrupt"
	}
	return "exit"
}

func (e *evaluation) move(x *Exit) engine.Decision {
	to := e.l.states[x.To]
	if b := e.l.safety.forMove(e.state.Name, to, x, &e.in); b != nil {
		return halted(e.state.Name, engine.HaltSafety, x.Rule, b.message(fmt.Sprintf("%s (%s to %s)", x.Rule, e.state.Name, to.Name)))
	}
	return engine.Decision{From: e.state.Name, To: to.Name, Rule: x.Rule, Message: to.Means, Clears: x.Clears, Marks: to.Marks,
		Retry: x.Retry, ResetRetries: to.Stable, Stable: to.Stable, Groups: x.groups}
}

// ensure collects the effects that must hold now, where the server may stay at all. Each is checked against the safety rules
// and the invariants, also those that have to wait for one before them.
func (e *evaluation) ensure() engine.Decision {
	for _, s := range e.state.Stays {
		if b := firstBreach(s.Requirements, &e.in); b != nil {
			return halted(e.state.Name, engine.HaltSafety, s.Effect.Name,
				b.message(fmt.Sprintf("staying in %s, which has %s,", e.state.Name, s.Effect.Name)))
		}
	}
	stored := e.in.facts.Fact(e.l.marksFact)
	for i, candidate := range e.state.Ensure {
		result := celrule.True
		if candidate.When != nil {
			result = candidate.When.evaluate(e)
		}
		e.record("ensure", candidate.Effect.Name, candidate.When, result.String(), 0)
		switch result {
		case celrule.Failed:
			return halted(e.state.Name, engine.HaltGuardError, candidate.Effect.Name,
				fmt.Sprintf("whether to ensure %s cannot be evaluated: %v", candidate.Effect.Name, e.err))
		case celrule.True:
			broken, open := e.l.safety.forEffect(candidate.Effect.Name, stored, &e.in)
			if broken != nil {
				return halted(e.state.Name, engine.HaltSafety, candidate.Effect.Name, broken.message(candidate.Effect.Name))
			}
			e.active = append(e.active, ensuredNow{candidate, open})
			e.wanted |= 1 << i
		case celrule.Unknown, celrule.False:
			// not wanted now
		}
	}
	for _, i := range e.l.ast.Invariants {
		if result := i.Must.evaluate(e); result != celrule.True {
			e.record("invariant", i.Rule, i.Must, result.String(), 0)
			return halted(e.state.Name, engine.HaltInvariant, i.Rule, fmt.Sprintf("the invariant %s does not hold: %s", i.Rule, i.Must.Source))
		}
	}
	effects, awaited := e.effects(stored)
	return engine.Decision{From: e.state.Name, To: e.state.Name, Message: e.state.Means, Stable: e.state.Stable, Effects: effects,
		Awaits: awaited, WakeAfter: e.wake, Deadline: e.deadline, DeadlineRule: e.deadlineRule}
}

// effects lists the effects that are wanted, up to the first that still waits for a safety rule, or that needs marks which
// are not stored yet: then these come last.
func (e *evaluation) effects(stored engine.Value) ([]engine.Effect, *engine.Awaited) {
	if len(e.active) == 0 {
		return nil, nil
	}
	if e.settled(stored) {
		if all := e.state.written(e.wanted); all != nil {
			return all, nil
		}
	}
	effects := make([]engine.Effect, 0, len(e.active))
	for _, a := range e.active {
		if a.open != nil {
			e.recordOpen(a.open)
			return effects, &engine.Awaited{Effect: a.Effect.Name, Rule: a.open.Rule, Message: a.open.Doc}
		}
		wanted := len(effects)
		for _, mark := range a.Kind.Marks {
			if !stored.Has(mark) {
				effects = append(effects, engine.MarkFirst(mark))
			}
		}
		if len(effects) > wanted {
			return effects, nil
		}
		effect := a.Effect
		earns, _ := e.l.safety.earns(effect.Name, &e.in) // asked before, and it did not fail
		for _, mark := range a.Kind.Earns {
			if earns && !stored.Has(mark) {
				effect.Earns = append(effect.Earns, mark)
			}
		}
		effects = append(effects, effect)
	}
	return effects, nil
}

// settled says that each effect that is wanted is ensured as the lifecycle writes it: none waits, and their marks are stored.
func (e *evaluation) settled(stored engine.Value) bool {
	missing := func(mark string) bool { return !stored.Has(mark) }
	for _, a := range e.active {
		if a.open != nil || slices.ContainsFunc(a.Kind.Marks, missing) || slices.ContainsFunc(a.Kind.Earns, missing) {
			return false
		}
	}
	return true
}

func (e *evaluation) recordOpen(r *Requirement) {
	if e.trace != nil {
		*e.trace = append(*e.trace, engine.TraceStep{Kind: "safety", Rule: r.Rule, Guard: r.Must.Source, Result: "waiting"})
	}
}

func (e *evaluation) record(kind, rule string, g *Condition, result string, remaining time.Duration) {
	if e.trace == nil {
		return
	}
	step := engine.TraceStep{Kind: kind, Rule: rule, Result: result, Remaining: remaining}
	if g != nil {
		step.Guard = g.Source
		step.Atoms = map[string]string{}
		for _, i := range g.Atoms() {
			step.Atoms[e.l.ast.Definitions[i].Name] = e.values[i].String()
		}
	}
	if result == celrule.Failed.String() && e.err != nil {
		step.Error = e.err.Error()
	}
	*e.trace = append(*e.trace, step)
}
