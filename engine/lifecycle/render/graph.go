// SPDX-License-Identifier: Apache-2.0

// Package render draws lifecycles: as Mermaid and DOT for other programs to lay out, as SVG that needs none, and as
// Markdown to read. All of it is pure: the same lifecycle gives the same text.
package render

import (
	"fmt"
	"strings"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// Counts is how many servers are in each state. A nil Counts draws the lifecycle alone.
type Counts map[engine.State]int

// graph is a lifecycle as it is drawn: rules between the same two states share an arrow, and interrupts stand apart.
type graph struct {
	initial    engine.State
	states     []node
	arrows     []arrow
	interrupts []interrupt
}

type node struct {
	name   engine.State
	means  string
	stable bool
	count  int
}

type arrow struct {
	from, to engine.State
	rules    []string
}

// label is the rules of an arrow, as one line.
func (a arrow) label() string { return strings.Join(a.rules, " / ") }

// interrupt is a rule that leads from many states to one.
type interrupt struct {
	rule string
	to   engine.State
	when string
	from []string
}

func newGraph(l *lifecycle.Lifecycle, counts Counts) graph {
	g := graph{initial: l.Initial()}
	for _, s := range l.States() {
		g.states = append(g.states, node{name: s, means: l.Means(s), stable: l.Stable(s), count: counts[s]})
	}
	for _, e := range l.Edges() {
		if e.Interrupt {
			g.addInterrupt(e)
			continue
		}
		g.addRule(e)
	}
	return g
}

func (g *graph) addRule(e lifecycle.Edge) {
	for i := range g.arrows {
		if g.arrows[i].from == e.From && g.arrows[i].to == e.To {
			g.arrows[i].rules = append(g.arrows[i].rules, e.Rule)
			return
		}
	}
	g.arrows = append(g.arrows, arrow{from: e.From, to: e.To, rules: []string{e.Rule}})
}

func (g *graph) addInterrupt(e lifecycle.Edge) {
	for i := range g.interrupts {
		if g.interrupts[i].rule == e.Rule {
			g.interrupts[i].from = append(g.interrupts[i].from, string(e.From))
			return
		}
	}
	g.interrupts = append(g.interrupts, interrupt{rule: e.Rule, to: e.To, when: e.When, from: []string{string(e.From)}})
}

// words is what a node says besides its name.
func (n node) words(counts Counts) string {
	if counts == nil {
		return string(n.name)
	}
	return fmt.Sprintf("%s (%d)", n.name, n.count)
}

// Mermaid is a state diagram in the language of mermaid.js. Interrupts are drawn as notes, because they lead away from
// nearly every state.
func Mermaid(l *lifecycle.Lifecycle, counts Counts) string {
	g := newGraph(l, counts)
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	fmt.Fprintf(&b, "    [*] --> %s\n", g.initial)
	for _, n := range g.states {
		if counts != nil {
			fmt.Fprintf(&b, "    %s: %s\n", n.name, n.words(counts))
		}
	}
	for _, a := range g.arrows {
		fmt.Fprintf(&b, "    %s --> %s: %s\n", a.from, a.to, a.label())
	}
	for _, i := range g.interrupts {
		fmt.Fprintf(&b, "    note right of %s: %s leads here from %s\n", i.to, i.rule, strings.Join(i.from, ", "))
	}
	return b.String()
}

// DOT is a directed graph in the language of Graphviz.
func DOT(l *lifecycle.Lifecycle, counts Counts) string {
	g := newGraph(l, counts)
	var b strings.Builder
	b.WriteString("digraph lifecycle {\n  rankdir=TB;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n" +
		"  edge [fontname=\"sans-serif\", fontsize=10];\n  start [shape=point];\n")
	for _, n := range g.states {
		style := ""
		if n.stable {
			style = ", style=\"rounded,bold\""
		}
		fmt.Fprintf(&b, "  %q [label=%q, tooltip=%q%s];\n", n.name, n.words(counts), n.means, style)
	}
	fmt.Fprintf(&b, "  start -> %q;\n", g.initial)
	for _, a := range g.arrows {
		fmt.Fprintf(&b, "  %q -> %q [label=%q];\n", a.from, a.to, strings.Join(a.rules, "\n"))
	}
	for _, i := range g.interrupts {
		for _, from := range i.from {
			fmt.Fprintf(&b, "  %q -> %q [label=%q, style=dashed];\n", from, i.to, i.rule)
		}
	}
	b.WriteString("}\n")
	return b.String()
}
