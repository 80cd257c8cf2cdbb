// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
)

func testCommand() *cobra.Command {
	var e examination
	var verbose bool
	var junit string
	cmd := &cobra.Command{
		Use:   "test -f DIR|FILE|- [-v] [--junit FILE]",
		Short: "Run a bundle's scenarios and Rego tests, and say what they leave out",
		Long: "Runs the scenarios of the lifecycle and the tests of the Rego, and measures which rules, effects and lines they exercise. " +
			"`policy verify` does all of this and more; test shows each of them.\n\n" +
			"Exit codes: 0 all passed; 1 one did not, or the bundle does not compile; 2 the command line makes no sense.",
		Example: "  {{.}} policy test -f ./fleet -v\n  {{.}} policy test -f ./fleet --junit results.xml",
		Args:    usage.NoArgs,
	}
	e.register(cmd)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also name what passed, and what nothing exercises")
	cmd.Flags().StringVar(&junit, "junit", "", "also write the results to a file, in the form of JUnit")
	_ = cmd.MarkFlagFilename("junit", "xml") // the error is about a flag that does not exist
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v, err := e.examine(cmd)
		if err != nil {
			return err
		}
		if junit != "" {
			if err := v.writeJUnit(junit); err != nil {
				return err
			}
		}
		return e.tell(cmd, v, !v.failed(), func(t *terminal.Terminal) error { return v.results(t, verbose) })
	}
	return cmd
}

// testCase is one scenario or one test of the Rego.
type testCase struct {
	scenario            bool
	name, file, message string
	line                int
	passed              bool
}

// cases are the scenarios and then the tests, each in its order.
func (v verdict) cases() []testCase {
	var all []testCase
	for _, s := range v.report.Scenarios {
		file, line, _ := v.Place(bundle.ScenariosFile, s.Line, 1)
		all = append(all, testCase{scenario: true, name: s.Name, passed: s.Passed, message: s.Message, file: file, line: line})
	}
	for _, r := range v.report.Tests {
		file, line, _ := v.Place(r.File, r.Line, 1)
		all = append(all, testCase{name: r.Name, passed: r.Passed, message: r.Message, file: file, line: line})
	}
	return all
}

// broken are the errors that keep tests from being run: all but those of a test, of its coverage, and of what
// was proven of a lifecycle that compiles.
func (v verdict) broken() diag.List {
	proven := v.report.Verification.Diagnostics()
	var found diag.List
	for _, d := range v.report.Found {
		if d.Severity == diag.Error && d.Code != "scenario-failed" && d.Code != "rego-test-failed" && !strings.HasPrefix(d.Code, "coverage-") &&
			!slices.Contains(proven, d) {
			found = append(found, d)
		}
	}
	return found
}

func (v verdict) failed() bool {
	for _, c := range v.cases() {
		if !c.passed {
			return true
		}
	}
	return len(v.broken()) > 0
}

func (v verdict) results(t *terminal.Terminal, verbose bool) error {
	for _, d := range v.broken() {
		if err := finding(t, v.Placed(d)); err != nil {
			return err
		}
	}
	passed, all := 0, v.cases()
	for _, c := range all {
		word, colour := "PASS", terminal.Good
		if c.passed {
			passed++
			if !verbose {
				continue
			}
		} else {
			word, colour = "FAIL", terminal.Bad
		}
		if _, err := fmt.Fprintf(t.Out, "%s  %s  (%s:%d)\n", t.Paint(colour, word, 0), terminal.Plain(c.name), c.file, c.line); err != nil {
			return err
		}
		if c.message != "" {
			if _, err := fmt.Fprintf(t.Out, "      %s\n", terminal.Plain(c.message)); err != nil {
				return err
			}
		}
	}
	if n := len(v.broken()); n > 0 {
		_, err := fmt.Fprintf(t.Out, "%s: %s above; so not all can be run, and %d of the %d that could be passed\n",
			t.Paint(terminal.Bad, "failed", 0), terminal.Count(n, "error"), passed, len(all))
		return err
	}
	c := v.report.Coverage
	if _, err := fmt.Fprintf(t.Out, "%d of %d passed; exercised: %d of %d rules, %d of %d effects, %d of %d lines of Rego\n",
		passed, len(all), c.Exercised, c.Rules, c.Shown, c.Effects, c.Evaluated, c.Lines); err != nil {
		return err
	}
	if !verbose {
		return nil
	}
	for _, missed := range []struct {
		what  string
		names []string
	}{{"rules", c.MissedRules}, {"effects", c.MissedEffects}, {"lines", c.MissedLines}} {
		if len(missed.names) > 0 {
			if _, err := fmt.Fprintf(t.Out, "%s that nothing exercises: %s\n", missed.what, strings.Join(missed.names, ", ")); err != nil {
				return err
			}
		}
	}
	return nil
}
