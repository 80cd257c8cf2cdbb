// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
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
	// Results says how each test ended, in the order of Passed and Failed together.
	Results []TestResult
	// Files says the same of each file of the policy.
	Files map[string]FileCoverage
	// UncoveredRules are the rules of which no test evaluated a line, in the order of the text.
	UncoveredRules []Place
}

// TestResult is how one test ended.
type TestResult struct {
	// Name is package.rule.
	Name   string
	Passed bool
	// Message says why it does not hold; empty where it does.
	Message string
	File    string
	Line    int
}

// FileCoverage counts the lines of one file that tests can evaluate.
type FileCoverage struct {
	Covered, All int
	// Missed names the lines that none evaluated, such as 12-14.
	Missed []string
}

// Place is where a rule stands.
type Place struct {
	File, Rule   string
	Line, Column int
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
		one := TestResult{Name: name, Passed: result.Pass()}
		if result.Location != nil {
			one.File, one.Line = result.Location.File, result.Location.Row
		}
		if one.Passed {
			report.Passed = append(report.Passed, name)
		} else {
			failed := failedTest(result)
			one.Message = failed.Message
			report.Failed = append(report.Failed, name)
			found = append(found, failed)
		}
		report.Results = append(report.Results, one)
	}
	if ctx.Err() != nil {
		found = append(found, diag.Diagnostic{Severity: diag.Error, Code: CodeTestFailed, File: spec.Package,
			Message: "the tests were stopped: " + ctx.Err().Error(), Hint: "let them do less"})
	}
	slices.Sort(report.Passed)
	slices.Sort(report.Failed)
	slices.SortFunc(found, func(a, b diag.Diagnostic) int { return strings.Compare(a.String(), b.String()) })
	slices.SortFunc(report.Results, func(a, b TestResult) int { return strings.Compare(a.Name, b.Name) })
	report.cover(compiler.Modules, coverage.Report(compiler.Modules))
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

func (r *TestReport) cover(modules map[string]*ast.Module, report cover.Report) {
	covered, all := 0, 0
	r.Files = map[string]FileCoverage{}
	for _, file := range slices.Sorted(maps.Keys(report.Files)) {
		lines := report.Files[file]
		if strings.HasSuffix(file, testSuffix) {
			continue
		}
		one := FileCoverage{Covered: lines.CoveredLines, All: lines.CoveredLines + lines.NotCoveredLines}
		covered += one.Covered
		all += one.All
		for _, missed := range lines.NotCovered {
			place := strconv.Itoa(missed.Start.Row)
			if missed.End.Row > missed.Start.Row {
				place += "-" + strconv.Itoa(missed.End.Row)
			}
			one.Missed = append(one.Missed, place)
			r.Uncovered = append(r.Uncovered, file+":"+place)
		}
		r.Files[file] = one
		r.UncoveredRules = append(r.UncoveredRules, uncoveredRules(file, modules[file], lines)...)
	}
	slices.Sort(r.Uncovered)
	if all > 0 {
		r.Coverage = 100 * float64(covered) / float64(all)
	}
}

// uncoveredRules lists the rules of which some line could be evaluated, and none was.
func uncoveredRules(file string, module *ast.Module, lines *cover.FileReport) []Place {
	if module == nil {
		return nil
	}
	var places []Place
	for _, rule := range module.Rules {
		loc := rule.Loc()
		first, last := loc.Row, loc.Row+strings.Count(string(loc.Text), "\n")
		within := func(ranges []cover.Range) bool {
			return slices.ContainsFunc(ranges, func(r cover.Range) bool { return r.Start.Row <= last && r.End.Row >= first })
		}
		if within(lines.NotCovered) && !within(lines.Covered) {
			places = append(places, Place{File: file, Rule: rule.Head.Ref().GroundPrefix().String(), Line: loc.Row, Column: loc.Col})
		}
	}
	return places
}
