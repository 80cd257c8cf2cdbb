// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/bdd"
	"github.com/metalaw/metalaw/engine/lifecycle/scenario"
)

// Step is one move.
type Step struct {
	From engine.State `json:"from"`
	Rule string       `json:"rule"`
	To   engine.State `json:"to"`
}

// Counterexample is facts by which a finding shows.
type Counterexample struct {
	State engine.State
	// Path is a shortest way of moves to the state from the initial one; each can fire by some facts.
	Path []Step
	// Cycle is the moves of a livelock, which begins in State.
	Cycle []Step
	Given []scenario.Given
	// Decision is what the lifecycle decides on these facts.
	Decision engine.Decision
	// Confirmed says that the lifecycle itself decided on these facts, and as the finding says. Where it is false no facts
	// could be constructed, and the finding may be of facts that cannot occur.
	Confirmed bool
}

// String renders the facts in one line.
func (c *Counterexample) String() string {
	var words []string
	for _, s := range c.Path {
		words = append(words, fmt.Sprintf("%s -%s-> %s", s.From, s.Rule, s.To))
	}
	path := strings.Join(words, ", ")
	if path != "" {
		path += "; "
	}
	words = words[:0]
	for _, g := range c.Given {
		words = append(words, g.String())
	}
	return fmt.Sprintf("%sin %s with {%s}", path, c.State, strings.Join(words, ", "))
}

// Scenario renders the counterexample as one entry of scenarios.yaml that says what the lifecycle decides now.
func (c *Counterexample) Scenario(name string) string {
	return scenario.Write(name, c.State, c.Given, c.Decision)
}

// maxAttempts is how many ways of answering opaque expressions are tried before a finding is left unconfirmed.
const maxAttempts = 8

// exampleIn is an example of what can occur in a state.
func (m *model) exampleIn(v *view, f bdd.Ref, shows func(engine.Decision) bool) *Counterexample {
	if !m.Meet(v.possible, f) {
		return nil
	}
	return m.example(m.And(f, v.possible), v.Name, shows)
}

// example constructs facts in a state by which f holds, as few that are not quiet as possible, and has the lifecycle decide
// on them. It returns nil where f never holds. The example is confirmed where shows agrees with the decision.
func (m *model) example(f bdd.Ref, state engine.State, shows func(engine.Decision) bool) *Counterexample {
	var first *Counterexample
	for range maxAttempts {
		assignment, ok := m.Cheapest(f, m.weights)
		if !ok {
			break
		}
		x := m.decided(f, assignment, state, shows)
		if x.Confirmed {
			return x
		}
		first = cmp.Or(first, x)
		opaque := m.opaqueCube(f, assignment)
		if opaque == bdd.True {
			break
		}
		f = m.Without(f, opaque)
	}
	return first
}

// decided has the lifecycle decide on the facts of an assignment.
func (m *model) decided(f bdd.Ref, assignment []bool, state engine.State, shows func(engine.Decision) bool) *Counterexample {
	facts, exact := m.facts(f, assignment, state)
	d := m.lifecycle.Decide(facts)
	return &Counterexample{State: state, Path: m.paths[state], Given: m.given(facts), Decision: d, Confirmed: exact && shows(d)}
}

// opaqueCube is the answers that an assignment gives to the opaque expressions on which f depends; True for none.
func (m *model) opaqueCube(f bdd.Ref, assignment []bool) bdd.Ref {
	support, cube := m.Support(f), bdd.True
	fix := func(v int) {
		if support.Has(v) {
			x := m.Var(v)
			if !assignment[v] {
				x = m.Not(x)
			}
			cube = m.And(cube, x)
		}
	}
	for _, p := range m.primitives {
		if p.kind == isOpaque {
			fix(p.variable)
			fix(p.failure)
		}
	}
	return cube
}

// given lists the facts that are not quiet, but the state.
func (m *model) given(v engine.Values) []scenario.Given {
	var all []scenario.Given
	for i, f := range m.words.Facts {
		if f.Name != engine.FactState && v[i].String() != m.quiet[i].String() {
			all = append(all, scenario.Given{Fact: f.Name, Value: v[i]})
		}
	}
	return all
}
