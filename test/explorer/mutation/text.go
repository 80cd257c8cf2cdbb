// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

func negated(text string) []string {
	if text == "" {
		return nil
	}
	return []string{"!(" + text + ")"}
}

// without are the texts in which one part of a combination is missing. A text that is no such combination has none.
func without(text, operator string) []string {
	parts := split(text, operator)
	if len(parts) < 2 || (operator == "&&" && len(split(text, "||")) > 1) {
		return nil
	}
	var all []string
	for i := range parts {
		rest := append(append([]string(nil), parts[:i]...), parts[i+1:]...)
		all = append(all, strings.Join(rest, " "+operator+" "))
	}
	return all
}

// split parts an expression at an operator that stands in no parentheses and no quotes.
func split(text, operator string) []string {
	var parts []string
	depth, from, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth == 0 && strings.HasPrefix(text[i:], operator):
			parts = append(parts, strings.TrimSpace(text[from:i]))
			from = i + len(operator)
			i = from - 1
		}
	}
	return append(parts, strings.TrimSpace(text[from:]))
}

// shortened is a third of a duration; none of what is no duration.
func shortened(text string) []string {
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil
	}
	return []string{(d / 3).String()}
}

// hopes are comparisons that an author might have written the other way round.
var hopes = []struct{ known, hoped string }{
	{`== "Off"`, `!= "On"`},
	{`== "On"`, `!= "Off"`},
	{`== "Critical"`, `!= "OK"`},
	{`probe.entry == lifecycle.entry`, `probe.entry <= lifecycle.entry`},
	{`wipe.entry == lifecycle.entry`, `wipe.entry <= lifecycle.entry`},
}

// unknownTaken takes what is not known for what is hoped.
func unknownTaken(text string) []string {
	for _, c := range hopes {
		if strings.Contains(text, c.known) {
			return []string{strings.Replace(text, c.known, c.hoped, 1)}
		}
	}
	return nil
}

func inline(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	var all []string
	for _, c := range n.Content {
		all = append(all, c.Value)
	}
	return "[" + strings.Join(all, ", ") + "]"
}
