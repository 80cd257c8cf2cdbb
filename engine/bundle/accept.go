// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"
	"slices"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/regosandbox"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
	"github.com/metalaw/metalaw/engine/lifecycle"
	"github.com/metalaw/metalaw/engine/lifecycle/scenario"
	"github.com/metalaw/metalaw/engine/lifecycle/verify"
	"github.com/metalaw/metalaw/macprefixes"
)

// Options is what acceptance needs besides the files.
type Options struct {
	Vocabulary *engine.Vocabulary
	// Fill is the shipped default. What a bundle leaves out is taken from it before the digest is made, so that an upgrade
	// of the operator changes nothing.
	Fill Files
	// BuiltIn is the bundle that managers hold themselves; empty where there is none.
	BuiltIn Files
	// Shipped are the bundles that come with the program, by name and whole.
	Shipped map[string]Files
	// Named are the states that something outside of the lifecycle knows by their names.
	Named []NamedState
	// Assume says what a bundle's settings make of the facts of every server that it governs, for verification; nil where
	// they make nothing of them.
	Assume func(Settings) []engine.Axiom
}

// Report is all that was seen of a bundle on its way to being accepted.
type Report struct {
	// Found is every finding of all files, sorted by file, line and column.
	Found diag.List
	// Files is the resolved content: the author's, and what was filled in.
	Files Files
	// Scenarios and Tests say how each of them ended.
	Scenarios []scenario.Result
	Tests     []regosandbox.TestResult
	Coverage  Coverage
	// Verification is what was proven of the lifecycle, with the counterexamples of its findings; empty where the bundle does
	// not compile.
	Verification verify.Report
}

// Accept is all that a bundle must pass before it may govern: size, strict parsing, typed rules, limits, verification,
// its own scenarios and Rego tests, and their coverage. A caller that accepts bundles calls this and nothing else. All
// problems are reported at once; the bundle is nil where one of them is an error. Three problems stand alone: content
// that is too large, or that is no text, is not looked at any further, and what a newer engine understands is not
// judged. The error is for mistakes in the vocabulary, and for a context that ended.
func Accept(ctx context.Context, files Files, in Options) (*Bundle, Report, error) {
	report := Report{Files: files.Filled(in.Fill)}
	if report.Found = tooLarge(report.Files); report.Found.HasErrors() {
		return nil, report, nil
	}
	if report.Found = NoText(report.Files); report.Found.HasErrors() {
		return nil, report, nil
	}
	b, found, err := compile(report.Files, in.Vocabulary)
	if err != nil {
		return nil, report, err
	}
	if len(withCode(found, codeEngine)) > 0 {
		report.Found = found
		return nil, report, nil
	}
	if report.Files.taken(MACPrefixesFile, in.BuiltIn) { // the factory accounts there are no secret: vendors print them
		found = slices.DeleteFunc(found, func(d diag.Diagnostic) bool { return d.Code == macprefixes.CodeInlineCredentials })
	}
	found = append(found, b.tooMany()...)
	found = append(found, b.checkNames(in)...)
	never := map[string]bool{}
	if b.Lifecycle != nil && !found.HasErrors() {
		var proven diag.List
		proven, never = b.verify(in, &report)
		found = append(found, proven...)
	}
	found = append(found, b.runScenarios(in, never, &report)...)
	found = append(found, b.regoCost(ctx)...)
	if len(withCode(found, "rego-cost"))+len(withCode(found, regosandbox.CodeBound)) == 0 { // tests of a rule that runs away run away as well
		found = append(found, b.runTests(ctx, in, &report)...)
	}
	if err := ctx.Err(); err != nil {
		return nil, report, err
	}
	report.Found = unique(found)
	report.Found.Sort()
	if report.Found.HasErrors() {
		return nil, report, nil
	}
	b.Findings = report.Found
	return b, report, nil
}

// checkNames warns of names that mean something else than an author may think: the bundle's own, and those of its states.
func (b *Bundle) checkNames(in Options) diag.List {
	var found diag.List
	if shipped, same := in.Shipped[b.Name]; same && b.Files.Digest() != shipped.Digest() {
		found = append(found, namesake(b.Files[BundleFile], b.Name))
	}
	for _, s := range in.Named {
		if b.Lifecycle != nil && !b.Lifecycle.Defines(s.State) {
			found = append(found, s.missing(b.Files[LifecycleFile]))
		}
	}
	return found
}

// namesake warns of a bundle that has the name of one that comes with the program: both are revisions of one bundle then.
func namesake(text []byte, name string) diag.Diagnostic {
	return atKey(diag.Diagnostic{Severity: diag.Warning, Code: "bundle-name-built-in", File: BundleFile,
		Message: fmt.Sprintf("%q is the name of a bundle that is built into metalaw, of which this becomes another version", name),
		Hint:    "take a name of your own, so that history, metrics and the right to activate tell the two apart"}, text, "the bundle", "name")
}

// Codes of states that are expected by their names.
const (
	CodeStateNameExpected     = "state-name-expected"
	CodeCanaryErrorsUnbounded = "canary-errors-unbounded"
)

// NamedState is a state that something outside of the lifecycle knows by its name.
type NamedState struct {
	State engine.State
	// Code is that of the warning where a lifecycle has no such state, Consequence what follows, and Hint what to do.
	Code, Consequence, Hint string
}

// missing warns of a lifecycle without the state.
func (s NamedState) missing(text []byte) diag.Diagnostic {
	return atKey(diag.Diagnostic{Severity: diag.Warning, Code: s.Code, File: LifecycleFile,
		Message: fmt.Sprintf("there is no state %s, so that %s", s.State, s.Consequence), Hint: s.Hint}, text, "the lifecycle", "states")
}

// atKey is a finding at the value of a key of a file.
func atKey(d diag.Diagnostic, text []byte, what, key string) diag.Diagnostic {
	f := yamlpos.Parse(d.File, text)
	for _, field := range f.Fields(f.Root, what) {
		if field.Name == key {
			d.Line, d.Column = field.Value.Line, field.Value.Column
		}
	}
	return d
}

// runScenarios holds the lifecycle to its scenarios. Rules that were taken from the default unchanged were exercised there.
func (b *Bundle) runScenarios(in Options, never map[string]bool, report *Report) diag.List {
	data, ok := b.Files[ScenariosFile]
	if !ok {
		return diag.List{{Severity: diag.Error, Code: "scenarios-missing", File: ScenariosFile,
			Message: "the bundle has a lifecycle of its own and no scenarios that show what it decides",
			Hint:    "write " + ScenariosFile + ", with at least one scenario for each rule"}}
	}
	settings := map[string]engine.Value{"policy.sanitization": engine.EnumValue(b.Settings.Sanitization)}
	all, found := scenario.Parse(ScenariosFile, data, in.Vocabulary, b.Lifecycle, settings)
	if b.Lifecycle == nil {
		return found
	}
	var failed diag.List
	report.Scenarios, failed = scenario.Run(ScenariosFile, all, b.Lifecycle)
	report.Coverage.coverLifecycle(b.Lifecycle, report.Scenarios, never)
	if !found.HasErrors() && !failed.HasErrors() { // a scenario that is mended may move by the rule that is missed now
		if !b.Files.taken(LifecycleFile, in.Fill) {
			failed = append(failed, report.Coverage.missedRules(lifecycle.Places(b.Files[LifecycleFile]))...)
		}
		failed = append(failed, report.Coverage.missedEffects(b.Settings.Coverage.Effects)...)
	}
	return append(found, failed...)
}
