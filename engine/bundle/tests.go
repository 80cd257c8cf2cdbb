// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine/admission"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/regosandbox"
	"github.com/metalaw/metalaw/engine/selection"
)

// runTests runs the tests of the Rego and measures what they evaluate. Files that were taken from the default unchanged
// were measured there.
func (b *Bundle) runTests(ctx context.Context, in Options, report *Report) diag.List {
	var found diag.List
	broken := false
	lines := map[string]regosandbox.FileCoverage{}
	rules := []regosandbox.Place{}
	for _, policy := range []struct {
		run      func(context.Context, map[string][]byte) (regosandbox.TestReport, diag.List)
		compiles bool
	}{{selection.RunTests, b.Selection != nil}, {admission.RunTests, b.Admission != nil}} {
		tests, problems := policy.run(ctx, b.Files)
		for _, d := range problems {
			// What is wrong with the policy is told already.
			if policy.compiles || d.Code != regosandbox.CodeTestFailed && d.Code != regosandbox.CodeEntrypoint {
				found = append(found, d)
			}
		}
		broken = broken || problems.HasErrors()
		for _, t := range tests.Results {
			if !slices.Contains(report.Tests, t) {
				report.Tests = append(report.Tests, t)
			}
		}
		for file, have := range tests.Files {
			if was, ok := lines[file]; !ok || have.Covered > was.Covered { // a library is tested with either package
				lines[file] = have
			}
		}
		rules = append(rules, tests.UncoveredRules...)
	}
	if broken || b.Selection == nil || b.Admission == nil {
		return found // a test that is mended may evaluate what is missed now
	}
	own := func(file string) bool { return !b.Files.taken(file, in.Fill) }
	found = append(found, missedRego(rules, own)...)
	return append(found, report.Coverage.coverRego(lines, own, b.Settings.Coverage.Rego)...)
}

func missedRego(rules []regosandbox.Place, own func(string) bool) diag.List {
	var found diag.List
	for _, r := range rules {
		if own(r.File) {
			found = append(found, diag.Diagnostic{Severity: diag.Error, Code: "coverage-rego-rule", File: r.File, Line: r.Line, Column: r.Column,
				Rule: r.Rule, Message: "no test evaluates this rule",
				Hint: fmt.Sprintf("add a test to %s in which it holds", provenBy(r.File))})
		}
	}
	return found
}

// coverRego counts the lines of all files and reports those of the author's own that fall below the floor.
func (c *Coverage) coverRego(lines map[string]regosandbox.FileCoverage, own func(string) bool, floor int) diag.List {
	var found diag.List
	for _, file := range slices.Sorted(maps.Keys(lines)) {
		one := lines[file]
		c.Lines += one.All
		c.Evaluated += one.Covered
		for _, missed := range one.Missed {
			c.MissedLines = append(c.MissedLines, file+":"+missed)
		}
		if have := percent(one.Covered, one.All); own(file) && have < floor {
			found = append(found, diag.Diagnostic{Severity: diag.Error, Code: "coverage-rego", File: file,
				Message: fmt.Sprintf("tests evaluate %d percent of its lines, and %d is the least", have, floor),
				Hint:    fmt.Sprintf("add tests to %s that evaluate line %s", provenBy(file), strings.Join(one.Missed, ", "))})
		}
	}
	return found
}
