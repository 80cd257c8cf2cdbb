// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"iter"
	"strings"
)

// markdown grows a page.
type markdown struct{ out strings.Builder }

// newPage begins a page with the sentence that says that it is generated, and from what.
func newPage(title, source string) *markdown {
	m := &markdown{}
	m.line("<!-- Generated from %s by `go generate ./docs`. Do not edit. -->", source)
	m.line("")
	m.heading(1, "%s", title)
	return m
}

func (m *markdown) line(format string, args ...any) {
	fmt.Fprintf(&m.out, format, args...)
	m.out.WriteByte('\n')
}

// heading writes a heading of a level and an empty line.
func (m *markdown) heading(level int, format string, args ...any) {
	m.line(strings.Repeat("#", level)+" "+format+"\n", args...)
}

// paragraph writes text and an empty line.
func (m *markdown) paragraph(text string) {
	m.out.WriteString(text)
	m.out.WriteString("\n\n")
}

// table writes a table; a row may be shorter than the head.
func (m *markdown) table(head []string, rows [][]string) {
	m.row(head)
	m.out.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, row := range rows {
		for len(row) < len(head) {
			row = append(row, "")
		}
		m.row(row)
	}
	m.out.WriteByte('\n')
}

// tableOf writes a table with a row for each item.
func tableOf[T any](m *markdown, head []string, items []T, row func(T) []string) {
	rows := make([][]string, len(items))
	for i, item := range items {
		rows[i] = row(item)
	}
	m.table(head, rows)
}

// groups cuts items where their key changes.
func groups[T any](items []T, key func(T) string) iter.Seq2[string, []T] {
	return func(yield func(string, []T) bool) {
		for len(items) > 0 {
			first, n := key(items[0]), 1
			for n < len(items) && key(items[n]) == first {
				n++
			}
			if !yield(first, items[:n]) {
				return
			}
			items = items[n:]
		}
	}
}

func (m *markdown) row(cells []string) {
	for _, c := range cells {
		m.out.WriteString("| " + strings.ReplaceAll(strings.ReplaceAll(c, "\n", " "), "|", `\|`) + " ")
	}
	m.out.WriteString("|\n")
}

// text is the page, with one line end at its end.
func (m *markdown) text() string { return strings.TrimRight(m.out.String(), "\n") + "\n" }

// code sets text as code; nothing stays nothing.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// codes sets each word as code.
func codes(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = code(w)
	}
	return strings.Join(all, ", ")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
