// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

var causes = []string{string(engine.HaltGuardError), string(engine.HaltInvariant), string(engine.HaltSafety), string(engine.HaltUnknownState)}

// expect reads what must be decided: to, stays or halts, and what belongs to it.
func (p *parser) expect(s *Scenario, n *yaml.Node) {
	fields := p.file.Fields(n, "expect", "to", "stays", "halts", "rule", "ensures", "awaits")
	outcome := ""
	for _, field := range fields {
		switch field.Name {
		case "to", "stays", "halts":
			if outcome != "" {
				p.file.Errorf(field.Key, "scenario-form", s.Name, "keep one of them", "a scenario cannot expect both %s and %s", outcome, field.Name)
				return
			}
			outcome = field.Name
		}
	}
	if outcome == "" {
		if n.Kind == yaml.MappingNode {
			p.file.Errorf(n, "scenario-form", s.Name, "write to: with a state, stays: true, or halts: with a cause",
				"the scenario does not say what must be decided")
		}
		return
	}
	for _, field := range fields {
		p.expectField(s, outcome, field)
	}
}

func (p *parser) expectField(s *Scenario, outcome string, field yamlpos.Field) {
	e, n := &s.Expect, field.Value
	belongs := map[string]string{"ensures": "stays", "awaits": "stays"}
	if needs := belongs[field.Name]; needs != "" && outcome != needs {
		p.file.Errorf(field.Key, "scenario-form", s.Name, "a decision either moves or acts; keep "+outcome+" or "+field.Name,
			"%s belongs to %s and not to %s", field.Name, needs, outcome)
		return
	}
	switch field.Name {
	case "to":
		e.To = engine.State(p.word(n, s.Name, "state-unknown", "state", p.states))
	case "stays":
		if !p.file.Bool(n, "stays") && n.Style == 0 && n.Value == "false" {
			p.file.Errorf(n, "scenario-form", s.Name, "write to: with the state that it moves to", "stays can only be true")
		}
	case "halts":
		e.Halts = engine.HaltCause(p.word(n, s.Name, "scenario-cause", "cause", causes))
	case "rule":
		p.expectRule(s, outcome, field)
	case "ensures":
		e.EnsuresSaid = true
		for _, item := range p.file.Items(n, "ensures") {
			e.Ensures = append(e.Ensures, p.word(item, s.Name, "effect-unknown", "effect", p.effects))
		}
	case "awaits":
		e.Awaits = p.word(n, s.Name, "effect-unknown", "effect", p.effects)
	}
}

func (p *parser) expectRule(s *Scenario, outcome string, field yamlpos.Field) {
	switch outcome {
	case "stays":
		p.file.Errorf(field.Key, "scenario-form", s.Name, "take rule: out, or write to: with the state that the rule leads to",
			"no rule fires where nothing moves")
	case "to":
		s.Expect.Rule = p.word(field.Value, s.Name, "rule-unknown", "rule", p.rules)
	default:
		s.Expect.Rule = p.word(field.Value, s.Name, "rule-unknown", "rule, effect or invariant", p.halting)
	}
}
