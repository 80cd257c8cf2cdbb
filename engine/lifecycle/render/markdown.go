// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"regexp"
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
		fmt.Fprintf(&b, "| %s | %s | %s |", n.name, cell(prose(n.means)), rest)
		if counts != nil {
			fmt.Fprintf(&b, " %d |", n.count)
		}
		b.WriteString("\n")
	}
	if len(g.interrupts) > 0 {
		b.WriteString("\n## Interrupts, tried first\n\n| rule | to | when | from |\n|---|---|---|---|\n")
		for _, i := range g.interrupts {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", i.rule, i.to, code(i.when), strings.Join(i.from, ", "))
		}
	}
	for _, n := range g.states {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", n.name, prose(n.means))
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

// code is text as it is. Backticks in it do not end it: it stands between more of them.
func code(text string) string {
	if text == "" {
		return ""
	}
	fence, space := "`", ""
	for strings.Contains(text, fence) {
		fence, space = fence+"`", " "
	}
	return fence + space + cell(text) + space + fence
}

// markup is what begins a tag or a character reference, and a link or an image.
var markup = regexp.MustCompile(`<[A-Za-z/!?]|&#?[0-9A-Za-z]+;|\[`)

// prose is an author's plain text where Markdown would take it for markup. Character references hold also behind a backslash.
func prose(text string) string {
	return markup.ReplaceAllStringFunc(text, func(m string) string {
		return map[byte]string{'<': "&lt;", '&': "&amp;", '[': "&#91;"}[m[0]] + m[1:]
	})
}

// cell keeps text from ending the cell of a table that it stands in.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
