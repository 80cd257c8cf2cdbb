// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"

	"github.com/metalaw/metalaw/engine/lifecycle"
)

// Markdown is a page: the diagram, the states in a table, and the ways out of each.
func Markdown(l *lifecycle.Lifecycle, counts Counts) string {
	g := newGraph(l, counts)
	var b strings.Builder
	fmt.Fprintf(&b, "```mermaid\n%s```\n\n", Mermaid(l, counts))
	b.WriteString("| state | means | may rest |")
	rule := "|---|---|---|"
	if counts != nil {
		b.WriteString(" servers |")
		rule += "---|"
	}
	b.WriteString("\n" + rule + "\n")
	for _, n := range g.states {
		rest := "no"
		if n.stable {
			rest = "yes"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |", n.name, cell(n.means), rest)
		if counts != nil {
			fmt.Fprintf(&b, " %d |", n.count)
		}
		b.WriteString("\n")
	}
	if len(g.interrupts) > 0 {
		b.WriteString("\n## Interrupts, tried first\n\n| rule | to | when | from |\n|---|---|---|---|\n")
		for _, i := range g.interrupts {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", i.rule, i.to, code(i.when), joined(i.from))
		}
	}
	for _, n := range g.states {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", n.name, n.means)
		ways(&b, l, n)
	}
	return b.String()
}

// ways lists the exits of a state in the order in which they are tried.
func ways(b *strings.Builder, l *lifecycle.Lifecycle, n node) {
	head := false
	for _, e := range l.Edges() {
		if e.From != n.name || e.Interrupt {
			continue
		}
		if !head {
			b.WriteString("\n| rule | to | when | after |\n|---|---|---|---|\n")
			head = true
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", e.Rule, e.To, code(e.When), e.After)
	}
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + cell(text) + "`"
}

// cell keeps text from ending the cell of a table that it stands in.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
