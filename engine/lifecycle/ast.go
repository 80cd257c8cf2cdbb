// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/celrule"
)

// Place is where something stands in the file; both count from 1.
type Place struct{ Line, Column int }

func placeOf(n *yaml.Node) Place {
	if n == nil {
		return Place{}
	}
	return Place{n.Line, n.Column}
}

// AST is a compiled lifecycle. Decisions evaluate it and static checks read it, so that both see the same. Nothing may change it.
type AST struct {
	File        string
	Vocabulary  *engine.Vocabulary
	Safety      *Safety
	Initial     engine.State
	InitialAt   Place
	Definitions []*Expression
	// States are in the order in which the author wrote them.
	States     []*State
	Invariants []*Invariant
	// Migrate is the target of each dropped state, and MigrateAt where that is written.
	Migrate   map[engine.State]engine.State
	MigrateAt map[engine.State]Place
}

// Expression is one typed CEL expression over facts that yields a boolean: a definition, or part of a safety rule.
type Expression struct {
	celrule.Rule[engine.Facts]
	// Name is the name that guards use, or the safety rule's.
	Name string
	// Facts are the vocabulary positions of the facts that it reads.
	Facts []int
	At    Place

	// ages are the comparisons with time in the expression.
	ages []ageThreshold
	// slot is where a decision keeps the answer of a safety rule's expression; 0 for a definition.
	slot int
}

// ageThreshold is a moment at which an expression changes by the passing of time alone.
type ageThreshold struct {
	fact int
	at   time.Duration
}

// State is one state.
type State struct {
	Name         engine.State
	At           Place
	Means        string
	Stable       bool
	Marks        []string
	Operations   []string
	OperationsAt []Place
	Ensure       []*Ensured
	// Exits holds the interrupts that apply, then the state's own exits: the order in which they are tried.
	Exits []*Exit
	// Stays is what must hold while a server stays here, whichever of the effects it wants.
	Stays []Staying

	// shared has a list of effects for each set of places in Ensure, made when a decision first needs it. It is empty for a state with
	// more than mostShared effects.
	shared []atomic.Pointer[[]engine.Effect]
}

// mostShared bounds shared to 256 lists.
const mostShared = 8

// Staying is what must hold to stay in a state because of one of its effects.
type Staying struct {
	*Ensured
	Requirements []*Requirement
}

// Ensured is one effect of a state.
type Ensured struct {
	Effect engine.Effect
	Kind   engine.EffectType
	At     Place
	When   *Condition
}

// Exit is one way out of a state.
type Exit struct {
	Rule      string
	At        Place
	To        engine.State
	When      *Condition
	After     *Deadline
	Clears    []string
	Retry     bool
	Interrupt bool

	groups []string
}

// Deadline is a literal length of time, or the position of a duration fact; Fact is -1 for a literal.
type Deadline struct {
	Literal time.Duration
	Fact    int
	At      Place
}

func (d *Deadline) length(f engine.Facts) (time.Duration, bool) {
	if d.Fact < 0 {
		return d.Literal, true
	}
	v := f.Fact(d.Fact)
	return v.Duration(), !v.Missing()
}

// Invariant is one invariant of the bundle.
type Invariant struct {
	Rule string
	At   Place
	Must *Condition
}

// AST returns what the lifecycle was compiled to.
func (l *Lifecycle) AST() *AST { return &l.ast }

// Compile compiles a boolean expression over the facts of the lifecycle's vocabulary.
func (l *Lifecycle) Compile(name, source string) (*Expression, error) {
	return l.expression(name, source)
}

// Evaluate evaluates an expression of the lifecycle's vocabulary.
func (l *Lifecycle) Evaluate(x *Expression, f engine.Facts) (bool, error) {
	return x.evaluate(&activation{vocabulary: l.vocabulary, facts: f})
}
