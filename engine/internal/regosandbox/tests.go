// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/metalaw/metalaw/engine/diag"
)

// CodeTestFailed: a test of the bundle does not hold.
const CodeTestFailed = "rego-test-failed"

// TestReport is what the tests of a bundle showed.
type TestReport struct {
	// Passed and Failed name the tests as package.rule, sorted.
	Passed, Failed []string
	// Coverage is the share of the lines of the policy (tests left out) that some test evaluated, 0 to 100.
	Coverage float64
	// Uncovered names those that none did, as file:line or file:line-line, sorted.
	Uncovered []string
}

// RunTests runs the rules named test_ in the files that belong to spec. A failing test is a diagnostic at its place; the
// error list is empty when all hold. Tests see the same sandbox as the policy.
func RunTests(ctx context.Context, spec Spec, files map[string][]byte) (TestReport, diag.List) {
	modules, found := parse(spec, files, true)
	if found.Err() != nil {
		return TestReport{}, found
	}
	compiler := newCompiler(spec, true)
	coverage := cover.New()
	results, err := tester.NewRunner().
		SetCompiler(compiler).
		SetModules(modules).
		SetParallel(1).
		SetTimeout(Longest).
		RaiseBuiltinErrors(true).
		CapturePrintOutput(false).
		SetCoverageRuns(nil).
		SetCoverageQueryTracer(coverage).
		RunTests(ctx, nil)
	if errs, ok := errors.AsType[ast.Errors](err); ok {
		return TestReport{}, append(found, fromOPA(modules, errs)...)
	}
	if err != nil {
		return TestReport{}, append(found, diag.Diagnostic{Severity: diag.Error, Code: CodeCompile, File: spec.Package, Message: err.Error()})
	}
	var report TestReport
	for result := range results {
		name := strings.TrimPrefix(result.Package, "data.") + "." + result.Name
		if result.Pass() {
			report.Passed = append(report.Passed, name)
			continue
		}
		report.Failed = append(report.Failed, name)
		found = append(found, failedTest(result))
	}
	if ctx.Err() != nil {
		found = append(found, diag.Diagnostic{Severity: diag.Error, Code: CodeTestFailed, File: spec.Package,
			Message: "the tests were stopped: " + ctx.Err().Error(), Hint: "let them do less"})
	}
	slices.Sort(report.Passed)
	slices.Sort(report.Failed)
	slices.SortFunc(found, func(a, b diag.Diagnostic) int { return strings.Compare(a.String(), b.String()) })
	report.cover(coverage.Report(compiler.Modules))
	return report, found
}

func failedTest(result *tester.Result) diag.Diagnostic {
	d := diag.Diagnostic{Severity: diag.Error, Code: CodeTestFailed, Rule: result.Name, Message: "the test does not hold",
		Hint: "one of its expressions is false or undefined"}
	if loc := result.Location; loc != nil {
		d.File, d.Line, d.Column = loc.File, loc.Row, loc.Col
	}
	switch {
	case result.Error != nil:
		d.Message, d.Hint = "the test ended with an error: "+result.Error.Error(), ""
	case result.Skip:
		d.Message, d.Hint = "the test is switched off by the prefix todo_", "make it hold or remove it"
	}
	return d
}

func (r *TestReport) cover(report cover.Report) {
	covered, all := 0, 0
	for file, lines := range report.Files {
		if strings.HasSuffix(file, testSuffix) {
			continue
		}
		covered += lines.CoveredLines
		all += lines.CoveredLines + lines.NotCoveredLines
		for _, missed := range lines.NotCovered {
			place := fmt.Sprintf("%s:%d", file, missed.Start.Row)
			if missed.End.Row > missed.Start.Row {
				place = fmt.Sprintf("%s-%d", place, missed.End.Row)
			}
			r.Uncovered = append(r.Uncovered, place)
		}
	}
	slices.Sort(r.Uncovered)
	if all > 0 {
		r.Coverage = 100 * float64(covered) / float64(all)
	}
}
