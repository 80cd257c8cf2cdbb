// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/metalaw/metalaw/engine/diag"
)

// The codes of diagnostics about tests.
const (
	// CodeTestFailed: a test of the bundle does not hold.
	CodeTestFailed = "rego-test-failed"
	// CodeTestLimit: the tests do more than metalaw runs.
	CodeTestLimit = "rego-test-limit"
)

const (
	// mostTests is how many tests the files of a package may hold.
	mostTests = 400
	// mostTestSteps bounds what all tests of a package do together, so that one which runs away ends within seconds.
	mostTestSteps = 500_000
	// longestTests stops tests that take few steps and much time. It is far more than all steps take on a slow machine.
	longestTests = time.Minute
)

// testFile is the first file with tests of the policy, or the policy's own.
func testFile(spec Spec, modules map[string]*ast.Module) string {
	for _, file := range slices.Sorted(maps.Keys(modules)) {
		if strings.HasSuffix(file, testSuffix) {
			return file
		}
	}
	return mainFile(spec, modules)
}

// TestReport is what the tests of a bundle showed.
type TestReport struct {
	// Results says how each test ended, sorted by name.
	Results []TestResult
	// Files says which lines of each file of the policy (tests left out) some test evaluated.
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
	if d := tooManyTests(modules); d != nil {
		return TestReport{}, append(found, *d)
	}
	compiler := newCompiler(spec, ofTests())
	coverage := cover.New()
	ctx, release := Bounded(ctx, mostTestSteps)
	defer release()
	ctx, end := context.WithTimeout(ctx, longestTests)
	defer end()
	results, last, err := runInOrder(ctx, compiler, modules, coverage)
	if errs, ok := errors.AsType[ast.Errors](err); ok {
		return TestReport{}, append(found, fromOPA(modules, errs)...)
	}
	if err != nil {
		return TestReport{}, append(found, diag.Diagnostic{Severity: diag.Error, Code: CodeCompile, File: spec.Package, Message: err.Error()})
	}
	var report TestReport
	for i, result := range results {
		// The last one may have come to its end before it noticed that it was stopped.
		one := TestResult{Name: strings.TrimPrefix(result.Package, "data.") + "." + result.Name,
			Passed: result.Pass() && (context.Cause(ctx) == nil || i < len(results)-1)}
		if result.Location != nil {
			one.File, one.Line = result.Location.File, result.Location.Row
		}
		if !one.Passed {
			failed := failedTest(result)
			one.Message = failed.Message
			if context.Cause(ctx) == nil {
				found = append(found, failed)
			}
		}
		report.Results = append(report.Results, one)
	}
	if cause := context.Cause(ctx); cause != nil {
		end := stopped(cause, testFile(spec, modules), last)
		if len(results) == 0 || last != results[len(results)-1].Package+"."+results[len(results)-1].Name { // it was left
			report.Results = append(report.Results, TestResult{Name: end.Rule, Message: end.Message, File: end.File, Line: end.Line})
		}
		found = append(found, end)
	}
	slices.SortFunc(found, func(a, b diag.Diagnostic) int { return strings.Compare(a.String(), b.String()) })
	slices.SortFunc(report.Results, func(a, b TestResult) int { return strings.Compare(a.Name, b.Name) })
	report.cover(compiler.Modules, coverage.Report(compiler.Modules))
	return report, found
}

// runInOrder runs one test after the other in the order of the text, up to the one that the context stops, and names the last. A
// runner left to itself takes them in an order that differs from run to run, and which of them uses up the steps would be a matter of
// chance.
func runInOrder(ctx context.Context, compiler *ast.Compiler, modules map[string]*ast.Module, coverage topdown.QueryTracer) (
	all []*tester.Result, last string, err error,
) {
	runner := func(only string) *tester.Runner {
		return tester.NewRunner().
			SetCompiler(compiler).
			SetParallel(1).
			SetTimeout(longestTests).
			RaiseBuiltinErrors(true).
			CapturePrintOutput(false).
			SetCoverageRuns(nil).
			Filter(only)
	}
	none, err := runner("^$").SetModules(modules).RunTests(ctx, nil) // it compiles
	if err != nil {
		return nil, "", err
	}
	for range none {
	}
	tracer := both{coverage, meter{workOf(ctx), weightOf(compiler.Modules), leaveGoroutine}}
	for _, last = range testNames(compiler) {
		each, _ := withBudget(ctx)
		results, err := runner("^"+regexp.QuoteMeta(last)+"$").SetCoverageQueryTracer(tracer).RunTests(each, nil)
		if err != nil {
			return nil, last, err
		}
		for result := range results {
			all = append(all, result)
		}
		select {
		case <-ctx.Done(): // what is behind the one that was stopped is not run
			return all, last, nil
		default:
		}
	}
	return all, last, nil
}

// testNames lists the tests by their full names, file by file and in the order of each file. No two have the same name:
// where rules share one, the runner has numbered them when it compiled.
func testNames(compiler *ast.Compiler) []string {
	var names []string
	for _, file := range slices.Sorted(maps.Keys(compiler.Modules)) {
		module := compiler.Modules[file]
		for _, rule := range module.Rules {
			ref := rule.Head.Ref().GroundPrefix()
			if at := slices.IndexFunc(ref, isTest); at >= 0 {
				names = append(names, module.Package.Path.Extend(ref[:at+1]).String())
			}
		}
	}
	return names
}

// stopped is the finding about tests that did not come to their end.
func stopped(cause error, file, last string) diag.Diagnostic {
	last = strings.TrimPrefix(last, "data.")
	d := diag.Diagnostic{Severity: diag.Error, Code: CodeTestLimit, File: file, Rule: last,
		Message: fmt.Sprintf("the tests together take longer than %v and were stopped in this one", longestTests),
		Hint:    "let a test look at less; a rule that it calls may run away"}
	if work, ok := errors.AsType[*WorkError](cause); ok {
		d.Message = fmt.Sprintf("the tests together take more than %d steps and were stopped in this one", work.Steps)
		if work.Parts {
			d.Message, d.Hint = "the test was stopped: "+work.Error(), BoundHint
		}
		if work.File != "" {
			d.File, d.Line, d.Column = work.File, work.Line, work.Column
		}
	}
	return d
}

// tooManyTests is the finding about more tests than are run; nil where there are not so many.
func tooManyTests(modules map[string]*ast.Module) *diag.Diagnostic {
	tests := 0
	for _, file := range slices.Sorted(maps.Keys(modules)) {
		for _, rule := range modules[file].Rules {
			if !isTest(rule.Head.Ref()[0]) {
				continue
			}
			tests++
			if tests > mostTests {
				return &diag.Diagnostic{Severity: diag.Error, Code: CodeTestLimit, File: file, Line: rule.Loc().Row, Column: rule.Loc().Col,
					Rule:    rule.Head.Ref().GroundPrefix().String(),
					Message: fmt.Sprintf("a policy may have %d tests, and this is one more", mostTests),
					Hint:    "let one test look at several cases: some case in [...]"}
			}
		}
	}
	return nil
}

func isTest(term *ast.Term) bool {
	word := strings.Trim(term.String(), `"`)
	return strings.HasPrefix(word, tester.TestPrefix) || strings.HasPrefix(word, tester.SkipTestPrefix)
}

func failedTest(result *tester.Result) diag.Diagnostic {
	d := diag.Diagnostic{Severity: diag.Error, Code: CodeTestFailed, Rule: result.Name, Message: "the test does not hold",
		Hint: "one of its expressions is false or undefined; correct the rule or the test"}
	if loc := result.Location; loc != nil {
		d.File, d.Line, d.Column = loc.File, loc.Row, loc.Col
	}
	switch {
	case result.Error != nil:
		message := result.Error.Error()
		if e, ok := errors.AsType[*topdown.Error](result.Error); ok {
			message = e.Message
		}
		d.Message, d.Hint = "the test ended with an error: "+message, "correct the test, or the rule that it calls"
		if _, bound := errors.AsType[*BoundError](result.Error); bound {
			d.Code, d.Hint = CodeBound, BoundHint
		}
	case result.Skip:
		d.Message, d.Hint = "the test is switched off by the prefix todo_", "make it hold or remove it"
	}
	return d
}

func (r *TestReport) cover(modules map[string]*ast.Module, report cover.Report) {
	r.Files = map[string]FileCoverage{}
	for _, file := range slices.Sorted(maps.Keys(report.Files)) {
		lines := report.Files[file]
		if strings.HasSuffix(file, testSuffix) {
			continue
		}
		one := FileCoverage{Covered: lines.CoveredLines, All: lines.CoveredLines + lines.NotCoveredLines}
		one.Missed = rows(lines.NotCovered)
		r.Files[file] = one
		r.UncoveredRules = append(r.UncoveredRules, uncoveredRules(file, modules[file], lines)...)
	}
}

// rows names lines, those that follow each other as one range.
func rows(ranges []cover.Range) []string {
	var all []int
	for _, r := range ranges {
		for row := r.Start.Row; row <= r.End.Row; row++ {
			all = append(all, row)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	var names []string
	for i := 0; i < len(all); {
		last := i
		for last+1 < len(all) && all[last+1] == all[last]+1 {
			last++
		}
		name := strconv.Itoa(all[i])
		if last > i {
			name += "-" + strconv.Itoa(all[last])
		}
		names = append(names, name)
		i = last + 1
	}
	return names
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
