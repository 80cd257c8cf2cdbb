// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	celast "github.com/google/cel-go/common/ast"
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine"
)

// Place is where something stands in the file; both count from 1.
type Place struct{ Line, Column int }

func placeOf(n *yaml.Node) Place {
	if n == nil {
		return Place{}
	}
	return Place{n.Line, n.Column}
}

// Anatomy is a compiled lifecycle laid open for static checks: everything that a decision depends on, with its place. It
// shares memory with the lifecycle and must not be changed.
type Anatomy struct {
	File        string
	Vocabulary  *engine.Vocabulary
	Initial     engine.State
	InitialAt   Place
	Definitions []Expression
	States      []StateAnatomy
	Invariants  []InvariantAnatomy
	Migrate     map[engine.State]engine.State
	// MigrateAt is where each dropped state is told to migrate.
	MigrateAt map[engine.State]Place
	// Enter, Arrive, Leave, Clear, Set, Effect and Stays are the safety rules: the first three by state, the next two by mark, and
	// the last two by effect: to ensure it, and to stay in a state that has it. Arrive is asked of exits only.
	Enter, Arrive     map[engine.State][]RequirementAnatomy
	Leave             map[engine.State][]RequirementAnatomy
	Clear, Set        map[string][]RequirementAnatomy
	Effect, Stays     map[string][]RequirementAnatomy
	Axioms, AfterMove []Expression
	// Brings is, by effect, what holds only in states that have the effect.
	Brings map[string]*Expression
	// Assumed is what holds besides of the servers that the lifecycle governs.
	Assumed []Expression

	language *language
}

// Expression is one typed CEL expression that yields a boolean.
type Expression struct {
	// Name is the name that guards use, or the safety rule's.
	Name    string
	Source  string
	Checked *celast.AST
	// Facts are the vocabulary positions of the facts that it reads.
	Facts []int
	At    Place
}

// RequirementAnatomy is one safety rule. Awaits and Halts are nil where it has none.
type RequirementAnatomy struct {
	Rule, Doc           string
	Must, Awaits, Halts *Expression
}

// StateAnatomy is one state. Exits holds the interrupts that apply first: the order in which they are tried.
type StateAnatomy struct {
	Name       engine.State
	At         Place
	Stable     bool
	Marks      []string
	Operations []string
	// OperationsAt are their places.
	OperationsAt []Place
	Ensure       []EnsureAnatomy
	Exits        []ExitAnatomy
}

// EnsureAnatomy is one effect of a state. Marks are those that it needs stored first, or earns; Sets and Clears those by which it
// remembers how it was carried out.
type EnsureAnatomy struct {
	Effect  string
	Touches bool
	Marks   []string
	At      Place
	When    *Condition
}

// ExitAnatomy is one way out of a state.
type ExitAnatomy struct {
	Rule      string
	At        Place
	To        engine.State
	When      *Condition
	After     *DeadlineAnatomy
	Clears    []string
	Retry     bool
	Interrupt bool
}

// DeadlineAnatomy is a length of time, or the position of the fact that holds it; Fact is -1 for a literal.
type DeadlineAnatomy struct {
	Literal time.Duration
	Fact    int
	At      Place
}

// InvariantAnatomy is one invariant.
type InvariantAnatomy struct {
	Rule string
	At   Place
	Must *Condition
}

// ConditionOp is what a Condition is.
type ConditionOp = guardOp

// The forms of a Condition. IfState, IfEnsuring and IfActing occur in invariants only.
const (
	IfAtom     = opAtom
	IfNot      = opNot
	IfAnd      = opAnd
	IfOr       = opOr
	IfConst    = opConst
	IfState    = opState
	IfEnsuring = opEnsuring
	IfActing   = opActing
)

// Condition combines definitions.
type Condition struct {
	Op ConditionOp
	// Atom is the position of a definition, Word a state or an effect, Value a constant.
	Atom   int
	Word   string
	Value  bool
	Kids   []*Condition
	Source string
	At     Place
}

func conditionOf(g *guard) *Condition {
	if g == nil {
		return nil
	}
	c := &Condition{Op: g.op, Atom: g.atom, Word: g.word, Value: g.value, Source: g.source, At: g.at}
	for _, kid := range g.kids {
		c.Kids = append(c.Kids, conditionOf(kid))
	}
	return c
}

// Anatomy lays the lifecycle open. What is assumed holds besides the vocabulary's axioms, such as what the settings of one
// bundle say. The error is for mistakes in the vocabulary's declarations and in what is assumed.
func (l *Lifecycle) Anatomy(assumed ...engine.Axiom) (*Anatomy, error) {
	a := &Anatomy{File: l.file, Vocabulary: l.vocabulary, Initial: l.initial, InitialAt: l.initialAt,
		Migrate: l.migrate, MigrateAt: l.migrateAt,
		Definitions: expressionsOf(l.atoms), language: l.language}
	laws, err := l.language.laws()
	if err != nil {
		return a, err
	}
	also, err := l.language.axioms(assumed)
	if err != nil {
		return a, err
	}
	a.Axioms, a.AfterMove, a.Assumed = expressionsOf(laws.axioms), expressionsOf(laws.afterMove), expressionsOf(also)
	a.Brings = expressionsBy(laws.brings)
	a.Enter, a.Arrive = requirementsOf(laws, l.safety.enter), requirementsOf(laws, l.safety.arrive)
	a.Leave = requirementsOf(laws, l.safety.leave)
	a.Clear, a.Set = requirementsOf(laws, l.safety.clear), requirementsOf(laws, l.safety.set)
	a.Effect, a.Stays = requirementsOf(laws, l.safety.effect), requirementsOf(laws, l.safety.stays)
	for _, name := range l.order {
		a.States = append(a.States, l.anatomyOf(l.states[name]))
	}
	for _, i := range l.invariants {
		a.Invariants = append(a.Invariants, InvariantAnatomy{Rule: i.rule, At: i.at, Must: conditionOf(i.must)})
	}
	return a, nil
}

// Evaluator compiles an expression over the vocabulary's facts, such as a part of a definition.
func (a *Anatomy) Evaluator(source string) (func(engine.Facts) (bool, error), error) {
	atom, err := compileRequirement(a.language.env, a.Vocabulary, source, source)
	if err != nil {
		return nil, err
	}
	return func(f engine.Facts) (bool, error) {
		return atom.evaluate(&activation{vocabulary: a.Vocabulary, facts: f})
	}, nil
}

func requirementsOf[K comparable](laws *laws, all map[K][]requirement) map[K][]RequirementAnatomy {
	laid := make(map[K][]RequirementAnatomy, len(all))
	for name, requirements := range all {
		for _, r := range requirements {
			a := RequirementAnatomy{Rule: r.Rule, Doc: r.Doc, Must: expressionOf(r.atom)}
			if r.awaits != nil {
				a.Awaits = expressionOf(r.awaits)
			}
			if r.Halts != "" {
				a.Halts = expressionOf(laws.halts[[2]string{r.Rule, r.Halts}])
			}
			laid[name] = append(laid[name], a)
		}
	}
	return laid
}

func expressionOf(a *atom) *Expression {
	return &Expression{Name: a.name, Source: a.source, Checked: a.checked, Facts: a.facts, At: a.at}
}

func expressionsBy(all map[string]*atom) map[string]*Expression {
	laid := make(map[string]*Expression, len(all))
	for name, a := range all {
		laid[name] = expressionOf(a)
	}
	return laid
}

func expressionsOf(all []*atom) []Expression {
	var laid []Expression
	for _, a := range all {
		laid = append(laid, *expressionOf(a))
	}
	return laid
}

func (l *Lifecycle) anatomyOf(st *state) StateAnatomy {
	s := StateAnatomy{Name: st.name, At: st.at, Stable: st.stable, Marks: st.marks, Operations: st.operations,
		OperationsAt: st.operationsAt}
	for _, e := range st.ensure {
		one := EnsureAnatomy{Effect: e.effect.Name, Touches: e.kind.Touches, Marks: l.safety.marks[e.effect.Name],
			At: e.at, When: conditionOf(e.when)}
		s.Ensure = append(s.Ensure, one)
	}
	for _, e := range st.exits {
		exit := ExitAnatomy{Rule: e.rule, At: e.at, To: e.to, When: conditionOf(e.when), Clears: e.clears, Retry: e.retry,
			Interrupt: e.interrupt}
		if e.after != nil {
			exit.After = &DeadlineAnatomy{Literal: e.after.literal, Fact: e.after.fact, At: e.after.at}
		}
		s.Exits = append(s.Exits, exit)
	}
	return s
}
