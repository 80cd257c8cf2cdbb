// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/metalaw/metalaw/engine"
)

// Write is the scenario of a decision in the form that Parse reads: an entry of the list scenarios, ending in a line end.
// Facts that have their quiet value are left out.
func Write(name string, v *engine.Vocabulary, f engine.Facts, d engine.Decision) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- name: %s\n", strconv.Quote(name))
	var given []string
	for i, kind := range v.Facts {
		value := f.Fact(i)
		if kind.Name == v.StateFact {
			fmt.Fprintf(&b, "  state: %s\n", value.Text())
			continue
		}
		if text := literal(value); !value.Missing() && text != literal(kind.Quiet) {
			given = append(given, kind.Name+": "+text)
		}
	}
	if len(given) > 0 {
		fmt.Fprintf(&b, "  given: {%s}\n", strings.Join(given, ", "))
	}
	fmt.Fprintf(&b, "  expect: {%s}\n", expected(d))
	return b.String()
}

func expected(d engine.Decision) string {
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

// literal writes a value so that YAML takes it for nothing else.
func literal(v engine.Value) string {
	switch v.Kind() {
	case engine.Enum, engine.String:
		return strconv.Quote(v.Text())
	case engine.Duration, engine.Age:
		return v.Duration().String()
	case engine.Set:
		return "[" + strings.Join(v.Set(), ", ") + "]"
	default:
		return v.String()
	}
}
