// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/lifecycle"
	"github.com/metalaw/metalaw/policies"
)

// written is what the author wrote and the compiled lifecycle does not tell: definitions, and what a state ensures.
type written struct {
	Define     yaml.Node        `yaml:"define"`
	Interrupts []interrupt      `yaml:"interrupts"`
	States     map[string]state `yaml:"states"`
	Invariants []invariant      `yaml:"invariants"`
}

type interrupt struct {
	Rule, To, When string
	Except         []string
}

type state struct {
	Marks      []string    `yaml:"marks"`
	Operations []string    `yaml:"operations"`
	Ensure     []yaml.Node `yaml:"ensure"`
}

type invariant struct{ Rule, Must string }

type ensured struct {
	Do   string    `yaml:"do"`
	When string    `yaml:"when"`
	With yaml.Node `yaml:"with"`
}

func lifecyclePage(string) (string, error) {
	b, err := policies.Default()
	if err != nil {
		return "", err
	}
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		return "", err
	}
	var w written
	if err := yaml.Unmarshal(files[bundle.LifecycleFile], &w); err != nil {
		return "", err
	}
	m := newPage("The default lifecycle", "`policies/bundles/default/lifecycle.yaml`")
	m.paragraph(fmt.Sprintf("This is what bundle `%s` %s says a server may do next. "+
		"[Concepts](concepts.md) explains how to read it.", b.Name, b.Version))
	diagram(m, b.Lifecycle)
	stateTable(m, b.Lifecycle)
	interruptTable(m, w.Interrupts)
	for _, s := range b.Lifecycle.States() {
		if err := stateSection(m, b.Lifecycle, s, w.States[string(s)]); err != nil {
			return "", err
		}
	}
	definitions(m, &w)
	return m.text(), nil
}

// diagram draws the states' own exits; two rules between the same states share an arrow.
func diagram(m *markdown, l *lifecycle.Lifecycle) {
	m.line("```mermaid")
	m.line("stateDiagram-v2")
	m.line("    [*] --> %s", l.Initial())
	type arrow struct{ from, to engine.State }
	var order []arrow
	labels := map[arrow][]string{}
	for _, e := range l.Edges() {
		if e.Interrupt {
			continue
		}
		a := arrow{e.From, e.To}
		if labels[a] == nil {
			order = append(order, a)
		}
		labels[a] = append(labels[a], e.Rule)
	}
	for _, a := range order {
		m.line("    %s --> %s: %s", a.from, a.to, strings.Join(labels[a], " / "))
	}
	m.line("```")
	m.line("")
	m.paragraph("The two interrupts are left out of the drawing; they are listed below.")
}

func stateTable(m *markdown, l *lifecycle.Lifecycle) {
	m.line("## States")
	m.line("")
	var rows [][]string
	for _, s := range l.States() {
		rows = append(rows, []string{fmt.Sprintf("[%s](#%s)", s, strings.ToLower(string(s))), l.Means(s), yesNo(l.Stable(s))})
	}
	m.table([]string{"state", "means", "a server may rest here"}, rows)
}

func interruptTable(m *markdown, all []interrupt) {
	m.line("## Interrupts")
	m.line("")
	m.paragraph("These are tried first, in every state that is not excepted.")
	var rows [][]string
	for _, i := range all {
		rows = append(rows, []string{code(i.Rule), i.To, code(i.When), strings.Join(i.Except, ", ")})
	}
	m.table([]string{"rule", "to", "when", "not in"}, rows)
}

func stateSection(m *markdown, l *lifecycle.Lifecycle, s engine.State, w state) error {
	m.line("## %s", s)
	m.line("")
	m.paragraph("*" + l.Means(s) + "*")
	var facts []string
	if len(w.Marks) > 0 {
		facts = append(facts, "Entering it sets the mark "+codes(w.Marks)+".")
	}
	if len(w.Operations) > 0 {
		facts = append(facts, "It accepts the operations "+codes(w.Operations)+".")
	}
	if len(facts) > 0 {
		m.paragraph(strings.Join(facts, " "))
	}
	if len(w.Ensure) == 0 {
		m.paragraph("It ensures nothing: the machine is not touched.")
	} else {
		rows, err := ensureRows(w.Ensure)
		if err != nil {
			return fmt.Errorf("state %s: %w", s, err)
		}
		m.table([]string{"ensures, in order", "when", "with"}, rows)
	}
	var rows [][]string
	for _, e := range l.Edges() {
		if e.From != s || e.Interrupt {
			continue
		}
		rows = append(rows, []string{code(e.Rule), string(e.To), code(e.When), e.After, notes(e)})
	}
	m.table([]string{"rule", "to", "when", "after", ""}, rows)
	return nil
}

func notes(e lifecycle.Edge) string {
	var all []string
	if e.Retry {
		all = append(all, "counts as a retry")
	}
	if len(e.Clears) > 0 {
		all = append(all, "clears "+codes(e.Clears))
	}
	return strings.Join(all, "; ")
}

func ensureRows(nodes []yaml.Node) ([][]string, error) {
	var rows [][]string
	for i := range nodes {
		var e ensured
		if nodes[i].Kind == yaml.ScalarNode {
			e.Do = nodes[i].Value
		} else if err := nodes[i].Decode(&e); err != nil {
			return nil, err
		}
		var with []string
		for j := 0; j+1 < len(e.With.Content); j += 2 {
			with = append(with, code(e.With.Content[j].Value+": "+e.With.Content[j+1].Value))
		}
		link := fmt.Sprintf("[%s](reference/effects.md#%s)", e.Do, strings.ToLower(e.Do))
		rows = append(rows, []string{link, code(e.When), strings.Join(with, ", ")})
	}
	return rows, nil
}

func definitions(m *markdown, w *written) {
	m.line("## The names used above")
	m.line("")
	m.paragraph("Each is defined once, over [facts](reference/facts.md).")
	var rows [][]string
	for i := 0; i+1 < len(w.Define.Content); i += 2 {
		rows = append(rows, []string{code(w.Define.Content[i].Value), code(w.Define.Content[i+1].Value)})
	}
	m.table([]string{"name", "holds when"}, rows)
	m.line("## Invariants")
	m.line("")
	m.paragraph("These must hold at every decision, besides the [safety rules](reference/safety-rules.md); else the decision is halted.")
	rows = nil
	for _, i := range w.Invariants {
		rows = append(rows, []string{code(i.Rule), code(i.Must)})
	}
	m.table([]string{"invariant", "must hold"}, rows)
}
