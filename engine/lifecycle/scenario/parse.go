// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
	"github.com/metalaw/metalaw/engine/lifecycle"
	"github.com/metalaw/metalaw/engine/spelling"
)

const (
	apiVersion = "policy.metalaw.dev/v1alpha1"
	kindName   = "Scenarios"
	// MaxScenarios bounds how many scenarios a bundle may have.
	MaxScenarios = 1000
)

// Parse reads scenarios.yaml for a lifecycle. What a scenario does not give has its quiet value, or the value that settings
// say by the name of the fact. A nil lifecycle, one that does not compile, leaves states, rules and marks unchecked. All
// problems are reported with their places; scenarios that have none are returned also beside others that do.
func Parse(fileName string, data []byte, v *engine.Vocabulary, l *lifecycle.Lifecycle, settings map[string]engine.Value) ([]*Scenario, diag.List) {
	p := &parser{file: yamlpos.Parse(fileName, data), vocabulary: v, lifecycle: l, names: map[string]int{}}
	if p.file.Root == nil {
		return nil, p.file.Found
	}
	p.quiet = make(facts, len(v.Facts))
	for i, f := range v.Facts {
		p.quiet[i] = f.Quiet
		if value, ok := settings[f.Name]; ok {
			p.quiet[i] = value
		}
	}
	p.collectWords()
	return p.root(), p.file.Found
}

type parser struct {
	file       *yamlpos.File
	vocabulary *engine.Vocabulary
	lifecycle  *lifecycle.Lifecycle
	quiet      facts
	names      map[string]int
	// The words that a scenario may use; nil where the lifecycle that knows them does not compile.
	states, rules, halting, marks []string
	effects, facts                []string
}

func (p *parser) collectWords() {
	for _, f := range p.vocabulary.Facts {
		p.facts = append(p.facts, f.Name)
	}
	for _, e := range p.vocabulary.Effects {
		p.effects = append(p.effects, e.Name)
	}
	if p.lifecycle == nil {
		for mark := range p.vocabulary.Marks {
			p.effects = append(p.effects, engine.MarkEffect+"("+mark+")")
		}
		return
	}
	for _, s := range p.lifecycle.States() {
		p.states = append(p.states, string(s))
	}
	p.rules = []string{lifecycle.RuleMigrated}
	for _, e := range p.lifecycle.Edges() {
		p.rules = append(p.rules, e.Rule)
	}
	slices.Sort(p.rules)
	p.rules = slices.Compact(p.rules)
	p.halting = slices.Concat(p.rules, p.effects, p.lifecycle.Invariants())
	p.marks = p.lifecycle.Marks()
	for _, mark := range p.marks {
		p.effects = append(p.effects, engine.MarkEffect+"("+mark+")")
	}
}

func (p *parser) root() []*Scenario {
	var all []*Scenario
	said := false
	for _, field := range p.file.Fields(p.file.Root, "the file", "apiVersion", "kind", "scenarios") {
		switch field.Name {
		case "apiVersion":
			p.only(field, "yaml-api-version", apiVersion)
		case "kind":
			p.only(field, "yaml-kind", kindName)
		case "scenarios":
			said = true
			items := p.file.Items(field.Value, "scenarios")
			if len(items) > MaxScenarios {
				p.file.Errorf(field.Value, "limit-scenarios", "", "keep those that show something that no other shows",
					"the bundle has %d scenarios and at most %d are run", len(items), MaxScenarios)
				return nil
			}
			for _, item := range items {
				before := len(p.file.Found)
				if s := p.scenario(item); len(p.file.Found) == before {
					all = append(all, s)
				}
			}
		}
	}
	if !said {
		p.file.Errorf(p.file.Root, "yaml-missing-key", "", "add scenarios:", "the file has no scenarios")
	}
	return all
}

func (p *parser) only(field yamlpos.Field, code, word string) {
	if text := p.file.Text(field.Value, field.Name); text != word {
		p.file.Errorf(field.Value, code, "", "write "+word, "unknown %s %q", field.Name, text)
	}
}

func (p *parser) scenario(item *yaml.Node) *Scenario {
	s := &Scenario{Line: item.Line, at: item, given: slices.Clone(p.quiet)}
	fields := p.file.Fields(item, "a scenario", "name", "state", "given", "expect")
	for _, field := range fields {
		if field.Name == "name" {
			s.Name, s.at = strings.TrimSpace(p.file.Text(field.Value, "name")), field.Value
		}
	}
	p.checkName(item, s)
	for _, field := range fields {
		switch field.Name {
		case "state":
			s.State = p.stateBefore(s.Name, field.Value)
		case "given":
			for _, given := range p.file.Fields(field.Value, "given") {
				p.given(s, given)
			}
		case "expect":
			s.expectAt = field.Value
			p.expect(s, field.Value)
		}
	}
	if item.Kind == yaml.MappingNode && s.State == "" {
		p.file.Errorf(item, "scenario-form", s.Name, "add state:, the state that the server is in", "the scenario has no state")
	}
	if item.Kind == yaml.MappingNode && s.expectAt == nil {
		p.file.Errorf(item, "scenario-form", s.Name, "add expect:, for example {to: Available} or {stays: true}", "the scenario expects nothing")
	}
	if i, ok := p.vocabulary.Index(engine.FactState); ok {
		s.given[i] = engine.StringValue(string(s.State))
	}
	return s
}

func (p *parser) checkName(item *yaml.Node, s *Scenario) {
	if item.Kind != yaml.MappingNode {
		return
	}
	if s.Name == "" {
		p.file.Errorf(item, "scenario-form", "", "add name:, a sentence that says what happens", "the scenario has no name")
		return
	}
	if first, taken := p.names[s.Name]; taken {
		p.file.Errorf(s.at, "scenario-duplicate", "", fmt.Sprintf("the scenario in line %d has it already; say what is different here", first),
			"two scenarios are named %q", s.Name)
		return
	}
	p.names[s.Name] = s.at.Line
}

// stateBefore is a state that the lifecycle has, or one that it has dropped and migrates.
func (p *parser) stateBefore(scenario string, n *yaml.Node) engine.State {
	if p.lifecycle != nil {
		if _, ok := p.lifecycle.Migrates(engine.State(n.Value)); ok {
			return engine.State(n.Value)
		}
	}
	return engine.State(p.word(n, scenario, "state-unknown", "state", p.states))
}

// word reads one of a closed set; a nil set allows every word.
func (p *parser) word(n *yaml.Node, scenario, code, what string, allowed []string) string {
	text := p.file.Text(n, what)
	if n.Kind != yaml.ScalarNode || allowed == nil || slices.Contains(allowed, text) {
		return text
	}
	p.file.Errorf(n, code, scenario, hint(text, what, allowed), "there is no %s %q", what, text)
	return text
}

func hint(text, what string, allowed []string) string {
	all := what + "s: " + strings.Join(allowed, ", ") // of a bundle's own names no page tells
	if what == "effect" && len(allowed) > 16 {
		all = "the reference page of effects lists what there is"
	}
	return spelling.Hint(text, allowed, all)
}
