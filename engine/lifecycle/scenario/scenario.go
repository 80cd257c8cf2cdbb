// SPDX-License-Identifier: Apache-2.0

// Package scenario reads scenarios.yaml, in which the author of a bundle says what is to be decided on which facts, and
// holds a lifecycle to it.
package scenario

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine"
)

// Scenario is one example: a state, what is known, and what must be decided.
type Scenario struct {
	// Name is a sentence, unique in its file.
	Name string
	// Line is where the scenario begins.
	Line   int
	State  engine.State
	Expect Expectation

	given    engine.Values
	at       *yaml.Node
	expectAt *yaml.Node
}

// Expectation is what must be decided: a move, a stay or a halt.
type Expectation struct {
	// To is the state moved to; empty where the scenario expects no move.
	To engine.State
	// Halts is the cause of a halt; empty where the scenario expects none.
	Halts engine.HaltCause
	// Rule is the rule that moves, or the rule, effect or invariant that halts; empty where any may.
	Rule string
	// Ensures are the effects of a stay, exactly and in order. It counts only where EnsuresSaid.
	Ensures     []string
	EnsuresSaid bool
	// Awaits is the effect that waits; empty where the scenario says nothing of it.
	Awaits string
}

// String says in words what is expected.
func (e Expectation) String() string {
	switch {
	case e.Halts != "":
		return words("to be halted by "+string(e.Halts), " at ", e.Rule)
	case e.To != "":
		return words("a move to "+string(e.To), " by ", e.Rule)
	}
	text := "to stay"
	if e.EnsuresSaid {
		text += " and ensure " + list(e.Ensures)
	}
	return words(text, " while waiting with ", e.Awaits)
}

func words(text, joint, more string) string {
	if more == "" {
		return text
	}
	return text + joint + more
}

func list(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// Effect is how a scenario names an effect of a decision. The engine's own, which stores a mark, is named with its mark.
func Effect(e engine.Effect) string {
	if e.Name != engine.MarkEffect {
		return e.Name
	}
	return fmt.Sprintf("%s(%s)", e.Name, e.Param("mark").Text())
}

func effectNames(d engine.Decision) []string {
	var names []string
	for _, e := range d.Effects {
		names = append(names, Effect(e))
	}
	return names
}
