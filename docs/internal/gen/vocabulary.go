// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
)

func factsPage(string) (string, error) {
	m := newPage("Facts", "the vocabulary in `policies/facts.go`")
	m.paragraph("A fact is one thing that a lifecycle rule may ask about one server at one instant. Only the `define` part of a lifecycle reads " +
		"facts; everything below it combines the names defined there. What was not observed has a word for it, such as `Unknown` " +
		"or `None`, and is never taken for something else. For example, a power that cannot be read is not `Off`.")
	m.paragraph("An `enum` is compared with one of its words; another word is a compile error. An `age` grows by itself and may only be " +
		"compared with a duration literal. A `set` is asked with a function, such as `marked(\"Dirty\")`.")
	for group, facts := range groups(policies.Vocabulary().Facts, engine.FactType.Group) {
		m.heading(2, "%s", group)
		tableOf(m, []string{"fact", "type", "words", "meaning"}, facts, func(f engine.FactType) []string {
			return []string{code(f.Name), f.Kind.String(), codes(f.Values), f.Doc}
		})
	}
	return m.text(), nil
}

func effectsPage(string) (string, error) {
	m := newPage("Effects", "the vocabulary in `policies/effects.go`")
	m.paragraph("An effect is something that must hold while a server is in a state. A state lists its effects under `ensure`, in order; the first " +
		"that does not hold yet stops the rest. Effects are asserted again and again, so each says what a repeated call does.")
	m.paragraph("A *disruptive* effect changes power or what boots: the server is read again past every cache before it is carried out. " +
		"The [safety rules](safety-rules.md) that are named must hold whenever the effect is ensured, whatever the bundle says; " +
		"else the decision is halted.")
	for _, e := range policies.Vocabulary().Effects {
		m.heading(2, "%s", e.Name)
		m.line("%s", e.Asserts)
		m.line("")
		m.line("* **How it knows:** %s", e.Proof)
		m.line("* **Repeated:** %s", e.Repeat)
		m.line("* **Writes to the machine or its BMC:** %s. **Disruptive:** %s.", yesNo(e.Touches), yesNo(e.Disruptive))
		if len(e.Marks) > 0 {
			m.line("* **Stored first:** %s %s.", plural(len(e.Marks), "the mark", "the marks"), codes(e.Marks))
		}
		if len(e.Earns) > 0 {
			m.line("* **Earns:** %s %s, stored with the record of the request.", plural(len(e.Earns), "the mark", "the marks"), codes(e.Earns))
		}
		if len(e.Requires) > 0 {
			m.line("* **Safety rules:** %s", ruleLinks(e.Requires))
		}
		if len(e.Stays) > 0 {
			m.line("* **Safety rules of a state that has it**, wanted or not: %s", ruleLinks(e.Stays))
		}
		m.line("")
		if len(e.Params) > 0 {
			tableOf(m, []string{"parameter (`with`)", "type", "meaning"}, e.Params, func(p engine.ParamType) []string {
				return []string{code(p.Name), p.Type(), p.Doc}
			})
		}
	}
	v := policies.Vocabulary()
	m.heading(2, "Marks")
	m.paragraph("A mark is history that cannot be observed. It stands in `status.lifecycle.marks`.")
	tableOf(m, []string{"mark", "meaning"}, slices.Sorted(maps.Keys(v.Marks)), func(name string) []string {
		return []string{code(name), v.Marks[name]}
	})
	m.heading(2, "Operations")
	m.paragraph("A state may accept these operations, asked for with the annotation `metal.ironcore.dev/operation` " +
		"(see [annotations](annotations.md)): " + codes(v.Operations) + ".")
	return m.text(), nil
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// ruleLinks links each rule once.
func ruleLinks(rules []engine.Requirement) string {
	var all []string
	for _, r := range rules {
		if link := "[" + r.Rule + "](safety-rules.md#" + strings.ToLower(r.Rule) + ")"; !slices.Contains(all, link) {
			all = append(all, link)
		}
	}
	return strings.Join(all, ", ")
}

// safetyRule is a safety rule with all that it requires: of one effect it may be more than of another.
type safetyRule struct {
	name     string
	requires []guarded
}

// guarded is a requirement with everything that it guards.
type guarded struct {
	engine.Requirement
	guards []string
}

func safetyPage(string) (string, error) {
	m := newPage("Safety rules", "the vocabulary in `policies/safety.go`")
	m.paragraph("No bundle can switch these rules off. They are written over raw [facts](facts.md), so that no definition in a bundle can " +
		"weaken them. A decision that would break one is halted: nothing moves, nothing is done, and the condition `PolicyHalted` names the rule.")
	m.paragraph("Of some rules it can be open whether they will hold, because something is not known or not ready yet. " +
		"Then nothing is halted: the effect waits, and so does every effect after it.")
	m.paragraph("Where a rule asks for one thing in one place and for another elsewhere, each stands by itself with what it guards.")
	for _, rule := range safetyRules(policies.Vocabulary()) {
		m.heading(2, "%s", rule.name)
		for _, g := range rule.requires {
			m.line("%s.", strings.ToUpper(g.Doc[:1])+g.Doc[1:])
			m.line("")
			m.line("* **Must hold:** %s", code(g.Must))
			if g.Awaits != "" {
				m.line("* **Is waited for while:** %s", code(g.Awaits))
			}
			m.line("* **Guards:** %s", strings.Join(g.guards, ", "))
			m.line("")
		}
	}
	m.paragraph("[Security](../security.md) explains what the rules mean for the operator of a fleet, and what else keeps a machine safe.")
	return m.text(), nil
}

// safetyRules lists each rule once, in the order in which the vocabulary names it first, and beneath it each requirement once.
func safetyRules(v *engine.Vocabulary) []safetyRule {
	var all []safetyRule
	add := func(required []engine.Requirement, guards string) {
		for _, r := range required {
			at := slices.IndexFunc(all, func(known safetyRule) bool { return known.name == r.Rule })
			if at < 0 {
				at, all = len(all), append(all, safetyRule{name: r.Rule})
			}
			all[at].add(r, guards)
		}
	}
	for _, state := range slices.Sorted(maps.Keys(v.Enter)) {
		add(v.Enter[state], "entering state "+code(string(state)))
	}
	for _, state := range slices.Sorted(maps.Keys(v.Arrive)) {
		add(v.Arrive[state], "entering state "+code(string(state))+" by a rule; no lifecycle begins there, and `migrate` to it is warned of")
	}
	for _, state := range slices.Sorted(maps.Keys(v.Leave)) {
		add(v.Leave[state], "leaving state "+code(string(state))+" by a rule")
	}
	for _, mark := range slices.Sorted(maps.Keys(v.Clear)) {
		add(v.Clear[mark], "clearing the mark "+code(mark))
	}
	for _, mark := range slices.Sorted(maps.Keys(v.Set)) {
		add(v.Set[mark], "setting the mark "+code(mark)+", which no state can do by itself")
	}
	for _, e := range v.Effects {
		link := "[" + e.Name + "](effects.md#" + strings.ToLower(e.Name) + ")"
		add(e.Requires, link)
		add(e.Stays, "staying in a state that has "+link)
	}
	return all
}

func (s *safetyRule) add(r engine.Requirement, guards string) {
	for i := range s.requires {
		if s.requires[i].Requirement == r {
			s.requires[i].guards = append(s.requires[i].guards, guards)
			return
		}
	}
	s.requires = append(s.requires, guarded{r, []string{guards}})
}
