// SPDX-License-Identifier: Apache-2.0

// Package engine is the pure policy engine: typed facts and a compiled bundle in, a decision out. It has no clock, does
// no I/O and knows nothing of Kubernetes. A Vocabulary from outside declares facts and effects.
package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// FactType declares one fact that a rule may read.
type FactType struct {
	// Name is group and field, for example "bmc.power".
	Name string
	Kind Kind
	// Values is the closed set of an Enum, nil otherwise.
	Values []string
	// Least is the smallest value of an Int.
	Least int64
	// Quiet is the value of a fact about which a scenario says nothing: that of a clean, free machine that is known, can
	// be reached and is off.
	Quiet Value
	// Doc is one sentence for the reference page.
	Doc string
}

// zero is false, zero, empty, or an enum's first word.
func (f FactType) zero() Value {
	zero := Value{kind: f.Kind}
	if f.Kind == Enum && len(f.Values) > 0 {
		zero.text = f.Values[0]
	}
	return zero
}

// Group is the part of the name before the dot.
func (f FactType) Group() string {
	group, _, _ := strings.Cut(f.Name, ".")
	return group
}

// ParamType declares one parameter of an effect.
type ParamType struct {
	Name string
	Kind Kind
	// Values is the closed set of an Enum, nil otherwise.
	Values []string
	// Most bounds a Duration, and MostBecause says why; 0 where nothing does.
	Most        time.Duration
	MostBecause string
	// FalseNeeds names a Duration of the same effect: where that is 0 or left out, this Bool cannot be false.
	FalseNeeds string
	Doc        string
}

// Type says in words what the parameter may be.
func (p ParamType) Type() string {
	switch {
	case len(p.Values) > 0:
		return p.Kind.String() + " (" + strings.Join(p.Values, ", ") + ")"
	case p.Most > 0:
		return fmt.Sprintf("%s (%g h at most)", p.Kind, p.Most.Hours())
	}
	return p.Kind.String()
}

// Requirement is a safety rule that no bundle can switch off: a CEL expression over raw facts that must hold.
type Requirement struct {
	// Rule names the requirement in conditions, events and documentation.
	Rule string
	// Must is CEL over the vocabulary's facts.
	Must string
	// Awaits is CEL that holds while it is still open whether Must will hold, because something is not known or not ready
	// yet. The effect, and every effect after it, then waits, and nothing is halted. Empty where Must is never open. It
	// counts for effects and for the marks that they set.
	Awaits string
	// Halts is CEL that holds where a halt is what is wanted, because only a person can put things right. No rule
	// of a bundle has to guard against it, and static checks do not report it. Empty where authors must see to it that the
	// requirement holds.
	Halts string
	// Doc says what the requirement protects, in one sentence.
	Doc string
}

// EffectType declares one effect that a state may ensure.
type EffectType struct {
	Name string
	// Asserts is what holds once the effect is done.
	Asserts string
	// Proof is how the effect knows that it holds.
	Proof string
	// Repeat is what a repeated call does.
	Repeat string
	Params []ParamType
	// Disruptive effects change power, boot or data; the shell reads again before it carries them out.
	Disruptive bool
	// Touches says that the effect writes to the machine or its BMC in any way.
	Touches bool
	// Requires must hold whenever the effect is ensured; else the decision is halted, or the effect waits.
	Requires []Requirement
	// Stays must hold whenever a server stays in a state that has the effect, whether or not the effect is wanted, because what it
	// began may go on by itself; else the decision is halted. Nothing is waited for: such a state has to be left.
	Stays []Requirement
	// Marks must be stored before the effect is carried out; the engine sees to it by itself.
	Marks []string
	// Earns are the marks that asking for the effect earns. The shell stores them in the write that records its request,
	// right before it asks: an effect that is held back, or holds already, earns nothing.
	Earns []string
	// EarnsWhere is CEL outside of which the effect earns nothing, because it does not ask for it there; empty for an effect that always
	// may. An effect with Marks has none.
	EarnsWhere string
	// Serves are the operations that the effect carries out where an annotation asks for them.
	Serves []string
	// Brings is CEL that holds only after the effect, and no longer than its state's entry: static checks rule it out in states
	// that do not have the effect. Decisions do not rely on it. Empty where the effect leaves nothing of that kind.
	Brings string
	// Undoes names the effects that undo this one, or that this one undoes: a state that wants both at once would never rest.
	Undoes []string
}

// Axiom is something about facts that follows from the way in which they are made. Static checks rely on it; decisions do
// not.
type Axiom struct {
	// Holds is CEL over the vocabulary's facts.
	Holds string
	// Doc says why, in one sentence.
	Doc string
}

// Forfeit is what a rule gives up that clears a mark.
type Forfeit struct {
	// Loses is the consequence, and Instead what to do, each in one clause.
	Loses, Instead string
}

// The facts in which the engine finds a server's position in its lifecycle.
const (
	FactState   = "lifecycle.state"
	FactAge     = "lifecycle.age"
	FactMarks   = "lifecycle.marks"
	FactRetries = "lifecycle.retries"
)

// FactOperation is the name of the operation that is asked for.
const FactOperation = "operation.name"

// OperationFacts are the facts about the operation that is asked for. They have their quiet values right after a move that it
// served, and in a state that does not accept it.
var OperationFacts = []string{FactOperation, "operation.entry", "operation.reset"}

// Vocabulary is everything that a bundle may speak of: the facts, effects and safety rules of servers.
type Vocabulary struct {
	Facts   []FactType
	Effects []EffectType
	// Enter lists what must hold to enter a state, by state name.
	Enter map[State][]Requirement
	// Arrive lists what must hold besides to enter a state by a rule, by state name. It does not count where a person forces a
	// server there, nor for another program's state, a dropped one that migrates (static checks warn of that), or a marker that
	// outlived the status. No lifecycle begins in such a state.
	Arrive map[State][]Requirement
	// Leave lists what must hold to leave a state by a rule, by state name. Entering a state by hand leaves none by a rule.
	Leave map[State][]Requirement
	// Clear lists what must hold to clear a mark, by mark name.
	Clear map[string][]Requirement
	// Set lists what must hold to set a mark, by mark name. Only effects set such a mark: a state that says so itself does
	// not compile, because entering a state proves nothing about a machine.
	Set map[string][]Requirement
	// Kept are the marks that the engine sets and takes away by itself: a state that sets one, or a rule that clears it, does not
	// compile.
	Kept []string
	// Marks lists the marks that the engine knows by itself, with one sentence each.
	Marks map[string]string
	// Forfeits says, by mark, what is lost where a rule clears it. Nothing forbids that; static checks warn of it.
	Forfeits map[string]Forfeit
	// Operations lists the operation names that a state may accept.
	Operations []string
	// Handled are those of them that the shell serves by itself wherever a state accepts them.
	Handled []string
	// Moves are the rules of moves that the shell makes by itself and knows again by their names. No bundle has a rule of such a name.
	Moves []string
	// Axioms hold always. AfterMove hold besides right after every move; the facts that they name may change at a move, and
	// no others but the lifecycle's position.
	Axioms, AfterMove []Axiom
	// Destinations is, by operation, the one state to which rules may lead that serve it.
	Destinations map[string]State
	// Resumes is, by boolean fact, the state in which a server without a state begins where the fact holds, without
	// regard to the rules would make of it. A lifecycle without that state halts it: no other state keeps what was kept
	// by the state's name.
	Resumes map[string]State
	// Entries says of states how a server may come there without any rule, such as from another operator.
	Entries map[State]string

	index map[string]int
}

// NewVocabulary makes a vocabulary of its words. Its facts must not change any more. A fact without a quiet value has its
// kind's zero.
func NewVocabulary(words Vocabulary) *Vocabulary {
	words.Facts = slices.Clone(words.Facts)
	words.index = make(map[string]int, len(words.Facts))
	for i := range words.Facts {
		f := &words.Facts[i]
		words.index[f.Name] = i
		if f.Quiet.Missing() {
			f.Quiet = f.zero()
		}
	}
	return &words
}

// Index returns the position of a fact in Facts.
func (v *Vocabulary) Index(name string) (int, bool) {
	i, ok := v.index[name]
	return i, ok
}

// Effect returns the declaration of an effect.
func (v *Vocabulary) Effect(name string) (EffectType, bool) {
	for _, e := range v.Effects {
		if e.Name == name {
			return e, true
		}
	}
	return EffectType{}, false
}

// Facts is what is known about one subject at one instant.
type Facts interface {
	// Fact returns the value of the fact at position i of the vocabulary; a Missing value where it was not observed.
	Fact(i int) Value
}

// Values are facts by their positions in the vocabulary.
type Values []Value

// Fact implements Facts.
func (v Values) Fact(i int) Value { return v[i] }

// Quiet is the facts of a subject about which nothing is said.
func (v *Vocabulary) Quiet() Values {
	quiet := make(Values, len(v.Facts))
	for i := range v.Facts {
		quiet[i] = v.Facts[i].Quiet
	}
	return quiet
}
