// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/lifecycle"
	"github.com/metalaw/metalaw/engine/lifecycle/render"
	"github.com/metalaw/metalaw/policies"
)

// written is what the author wrote and the compiled lifecycle does not tell: definitions, and what a state ensures.
type written struct {
	Define     yaml.Node        `yaml:"define"`
	Interrupts []interrupt      `yaml:"interrupts"`
	States     map[string]state `yaml:"states"`
	Invariants []invariant      `yaml:"invariants"`

	Migrate map[string]string `yaml:"migrate"`
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
	return bundlePage(policies.DefaultBundle, "The default lifecycle", "")
}

// bundlePages are the pages of the shipped bundles beside the default.
func bundlePages() []page {
	var all []page
	for _, name := range policies.ShippedNames() {
		if name == policies.DefaultBundle {
			continue
		}
		all = append(all, page{"bundles/" + name + ".md", func(string) (string, error) {
			return bundlePage(name, "The bundle "+name, "../")
		}})
	}
	return all
}

// bundlePage shows the lifecycle of a shipped bundle. up leads from the page to docs.
func bundlePage(name, title, up string) (string, error) {
	files, err := policies.Shipped(name)
	if err != nil {
		return "", err
	}
	b, found, err := bundle.Compile(files, policies.Vocabulary())
	if err != nil {
		return "", err
	}
	if err := found.Err(); err != nil {
		return "", err
	}
	var w written
	if err := yaml.Unmarshal(files[bundle.LifecycleFile], &w); err != nil {
		return "", err
	}
	m := newPage(title, "`policies/bundles/"+name+"/lifecycle.yaml`")
	m.paragraph(fmt.Sprintf("This is what bundle `%s` %s says a server may do next. "+
		"[Concepts](%sconcepts.md) explains how to read it.", b.Name, b.Version, up))
	if name != policies.DefaultBundle {
		m.paragraph(fmt.Sprintf("*%s* Choosing among servers, admission and MAC prefixes are as in [the default](%slifecycle.md).",
			b.Description, up))
		settings(m, b.Settings)
	}
	diagram(m, b.Lifecycle)
	stateTable(m, b.Lifecycle)
	interruptTable(m, w.Interrupts)
	for _, s := range b.Lifecycle.States() {
		if err := stateSection(m, b.Lifecycle, s, w.States[string(s)], up); err != nil {
			return "", err
		}
	}
	definitions(m, &w, up)
	if name == policies.DefaultBundle {
		gateTable(m)
	}
	return m.text(), nil
}

// settings shows what the bundle sets.
func settings(m *markdown, s bundle.Settings) {
	m.heading(2, "Settings")
	m.table([]string{"setting", "value"}, [][]string{
		{code("sanitization"), code(s.Sanitization)},
		{code("firstSeen"), code(s.FirstSeen)},
		{code("releaseGrace"), code(s.ReleaseGrace.String())},
		{code("releasePower"), code(s.ReleasePower)},
		{code("releaseShutdown"), code(s.ReleaseShutdown.String())},
		{code("probe.allowUnauthenticated"), code(fmt.Sprint(s.AllowUnauthenticated))},
		{code("bmc.tls"), code(s.BMCTLS)},
		{code("boot.firstWord"), code(s.Boot.FirstWord.String())},
		{code("boot.mode"), code(s.Boot.Mode)},
		{code("boot.ignition"), code(s.Boot.Ignition)},
		{code("boot.withoutOverride"), code(fmt.Sprint(s.Boot.WithoutOverride))},
		{code("offer.accepts"), code(accepted(&s))},
		{code("wipe.acceptDriveErase"), code(fmt.Sprint(s.Wipe.AcceptDriveErase))},
		{code("wipe.minimumTerm"), code(fmt.Sprintf("%q", s.Wipe.MinimumTerm))},
		{code("health.criticalStops"), code(s.Health.CriticalStops)},
		{code("canary"), code(fmt.Sprintf("maxHalts: %d, maxErrors: %d", s.Canary.MaxHalts, s.Canary.MaxErrors))},
		{code("coverage"), code(fmt.Sprintf("rego: %d, effects: %d", s.Coverage.Rego, s.Coverage.Effects))},
		{code("labels.inventory"), code(fmt.Sprint(!s.NoInventoryLabels))},
	})
}

// accepted lists what offer.accepts comes to.
func accepted(s *bundle.Settings) string {
	words := []string{bundle.AcceptWiped, bundle.AcceptBlank, bundle.AcceptAttested, bundle.AcceptUnread, bundle.AcceptData}
	return "[" + strings.Join(slices.DeleteFunc(words, func(w string) bool { return !s.Accepts(w) }), ", ") + "]"
}

// diagram draws the lifecycle as `metalaw policy render` does.
func diagram(m *markdown, l *lifecycle.Lifecycle) {
	m.line("```mermaid")
	m.line("%s```", render.Mermaid(l, nil))
	m.line("")
	if slices.ContainsFunc(l.Edges(), func(e lifecycle.Edge) bool { return e.Interrupt }) {
		m.paragraph("An interrupt, which leads from many states to one, is a note at that one; [Interrupts](#interrupts) says when.")
	}
}

func stateTable(m *markdown, l *lifecycle.Lifecycle) {
	m.heading(2, "States")
	tableOf(m, []string{"state", "means", "a server may rest here"}, l.States(), func(s engine.State) []string {
		return []string{fmt.Sprintf("[%s](#%s)", s, strings.ToLower(string(s))), l.Means(s), yesNo(l.Stable(s))}
	})
}

func interruptTable(m *markdown, all []interrupt) {
	if len(all) == 0 {
		return
	}
	m.heading(2, "Interrupts")
	m.paragraph("These are tried first, in every state that is not excepted.")
	tableOf(m, []string{"rule", "to", "when", "not in"}, all, func(i interrupt) []string {
		return []string{code(i.Rule), i.To, code(i.When), strings.Join(i.Except, ", ")}
	})
}

func stateSection(m *markdown, l *lifecycle.Lifecycle, s engine.State, w state, up string) error {
	m.heading(2, "%s", s)
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
		rows, err := ensureRows(w.Ensure, up)
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

func ensureRows(nodes []yaml.Node, up string) ([][]string, error) {
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
		link := fmt.Sprintf("[%s](%sreference/effects.md#%s)", e.Do, up, strings.ToLower(e.Do))
		rows = append(rows, []string{link, code(e.When), strings.Join(with, ", ")})
	}
	return rows, nil
}

func definitions(m *markdown, w *written, up string) {
	m.heading(2, "The names used above")
	m.paragraph(fmt.Sprintf("Each is defined once, over [facts](%sreference/facts.md).", up))
	var rows [][]string
	for i := 0; i+1 < len(w.Define.Content); i += 2 {
		rows = append(rows, []string{code(w.Define.Content[i].Value), code(w.Define.Content[i+1].Value)})
	}
	m.table([]string{"name", "holds when"}, rows)
	m.heading(2, "Invariants")
	m.paragraph("These must hold at every decision, besides the [safety rules](" + up + "reference/safety-rules.md); else the decision is halted.")
	tableOf(m, []string{"invariant", "must hold"}, w.Invariants, func(i invariant) []string {
		return []string{code(i.Rule), code(i.Must)}
	})
	if len(w.Migrate) == 0 {
		return
	}
	m.heading(2, "Migration")
	m.paragraph("A server that another bundle left in a state that this one does not have moves at once.")
	tableOf(m, []string{"from", "to"}, slices.Sorted(maps.Keys(w.Migrate)), func(from string) []string {
		return []string{from, w.Migrate[from]}
	})
}
