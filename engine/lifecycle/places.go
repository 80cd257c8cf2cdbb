// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// RulePlace is where a rule stands in lifecycle.yaml, and where it leads.
type RulePlace struct {
	Rule         string
	To           engine.State
	Line, Column int
}

// Places lists the rules of a lifecycle with their places, in the order of the text; nothing where it cannot be read.
func Places(data []byte) []RulePlace {
	f := yamlpos.Parse("", data)
	if f.Root == nil {
		return nil
	}
	s := parseSpec(f)
	all := make([]RulePlace, 0, len(s.interrupts))
	add := func(exits []exitSpec) {
		for _, e := range exits {
			all = append(all, RulePlace{Rule: e.rule, To: engine.State(e.to), Line: e.at.Line, Column: e.at.Column})
		}
	}
	add(s.interrupts)
	for _, st := range s.states {
		add(st.exits)
	}
	return all
}
