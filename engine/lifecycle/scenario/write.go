// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// Given is one fact that a scenario says; all others are quiet.
type Given struct {
	Fact  string
	Value engine.Value
}

// String is the fact as it is written under given.
func (g Given) String() string { return g.Fact + ": " + literal(g.Value) }

// Write is the scenario of a decision in the form that Parse reads: an entry of the list scenarios, ending in a line end.
func Write(name string, state engine.State, given []Given, d engine.Decision) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- name: %s\n  state: %s\n", strconv.Quote(name), state)
	if len(given) > 0 {
		words := make([]string, len(given))
		for i, g := range given {
			words[i] = g.String()
		}
		fmt.Fprintf(&b, "  given: {%s}\n", strings.Join(words, ", "))
	}
	fmt.Fprintf(&b, "  expect: {%s}\n", Expected(d))
	return b.String()
}

// Expected is a decision as it is written under expect, without the braces.
func Expected(d engine.Decision) string {
	switch {
	case d.Halt != nil && d.Halt.Rule != "":
		return fmt.Sprintf("halts: %s, rule: %s", d.Halt.Cause, d.Halt.Rule)
	case d.Halt != nil:
		return fmt.Sprintf("halts: %s", d.Halt.Cause)
	case d.Moves():
		return fmt.Sprintf("to: %s, rule: %s", d.To, d.Rule)
	}
	text := fmt.Sprintf("stays: true, ensures: [%s]", strings.Join(effectNames(d), ", "))
	if d.Awaits != nil {
		text += ", awaits: " + d.Awaits.Effect
	}
	return text
}

// literal writes a value so that YAML takes it for nothing else: a bare Off is a boolean to some readers.
func literal(v engine.Value) string {
	switch v.Kind() {
	case engine.Enum, engine.String:
		return strconv.Quote(v.Text())
	case engine.Duration, engine.Age:
		return yamlpos.LengthText(v.Duration())
	case engine.Set:
		words := make([]string, len(v.Set()))
		for i, w := range v.Set() {
			words[i] = strconv.Quote(w)
		}
		return "[" + strings.Join(words, ", ") + "]"
	default:
		return v.String()
	}
}
