// SPDX-License-Identifier: Apache-2.0

// Package diag holds the one shape in which every parser and check of a policy bundle says what is wrong.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says whether a finding keeps a bundle from being accepted.
type Severity string

const (
	// Error keeps the bundle from being accepted.
	Error Severity = "error"
	// Warning is shown to the author and does not keep the bundle from being accepted.
	Warning Severity = "warning"
	// Info is worth knowing, such as two rules of which the order decides; nothing is wrong.
	Info Severity = "info"
)

// Diagnostic is one finding about one place in a bundle.
type Diagnostic struct {
	Severity Severity `json:"severity"`
	// Code is stable and documented, for example "cel-unknown-fact".
	Code string `json:"code"`
	// File is the key of the ConfigMap, for example "lifecycle.yaml".
	File string `json:"file"`
	// Line and Column count from 1; 0 means that the finding is about the whole file.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Rule is the rule, state or atom concerned, if there is one.
	Rule string `json:"rule,omitempty"`
	// Message says what is wrong, in one sentence.
	Message string `json:"message"`
	// Hint says what to do about it.
	Hint string `json:"hint,omitempty"`
}

// String renders the finding as file:line:column, the way compilers do, so that editors can jump to it.
func (d Diagnostic) String() string {
	var b strings.Builder
	b.WriteString(d.File)
	if d.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", d.Line, d.Column)
	}
	fmt.Fprintf(&b, ": %s: ", d.Severity)
	if d.Rule != "" {
		fmt.Fprintf(&b, "%s: ", d.Rule)
	}
	b.WriteString(d.Message)
	if d.Hint != "" {
		fmt.Fprintf(&b, " (%s)", d.Hint)
	}
	fmt.Fprintf(&b, " [%s]", d.Code)
	return b.String()
}

// List is all findings about a bundle. A nil or empty List means that nothing was found.
type List []Diagnostic

// Sort orders findings as a person reads the files.
func (l List) Sort() {
	slices.SortStableFunc(l, func(a, b Diagnostic) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column, strings.Compare(a.Code, b.Code),
			strings.Compare(a.Message, b.Message))
	})
}

// HasErrors says whether the list holds an Error, so that the bundle cannot be accepted.
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(d Diagnostic) bool { return d.Severity == Error })
}

// Err returns nil when the list holds no Error, and otherwise one error that names all of them.
func (l List) Err() error {
	var lines []string
	for _, d := range l {
		if d.Severity == Error {
			lines = append(lines, d.String())
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(lines, "\n"))
}
