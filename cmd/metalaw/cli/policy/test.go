// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"encoding/xml"
	"os"
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
			"Exit codes: 0 all passed. 1 one did not, or the bundle does not compile. 2 the command line makes no sense.",
		Example: "  {{.}} policy test -f ./fleet -v\n  {{.}} policy test -f ./fleet --junit results.xml",
		Args:    usage.NoArgs,
	}
	e.from.Register(cmd)
	e.output.Register(cmd)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also name what passed, and what nothing exercises")
	cmd.Flags().StringVar(&junit, "junit", "", "also write the results to a file, in the form of JUnit")
	_ = cmd.MarkFlagFilename("junit", "xml") // the error is about a flag that does not exist
	cmd.RunE = terminal.Run(func(ctx context.Context, t *terminal.Terminal, _ []string) error {
		v, err := e.examine(ctx, t)
		if err != nil {
			return err
		}
		if junit != "" {
			if err := v.writeJUnit(junit); err != nil {
				return err
			}
		}
		return e.tell(t, v, !v.failed(), func() { v.results(t, verbose) })
	})
	return cmd
}

// testCase is one scenario or one test of the Rego.
type testCase struct {
	scenario bool
	Name     string `json:"name"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Passed   bool   `json:"passed"`
	Message  string `json:"message,omitempty"`
}

func (v verdict) cases() []testCase {
	var all []testCase
	for _, s := range v.report.Scenarios {
		file, line, _ := v.Place(bundle.ScenariosFile, s.Line, 1)
		all = append(all, testCase{scenario: true, Name: s.Name, Passed: s.Passed, Message: s.Message, File: file, Line: line})
	}
	for _, r := range v.report.Tests {
		file, line, _ := v.Place(r.File, r.Line, 1)
		all = append(all, testCase{Name: r.Name, Passed: r.Passed, Message: r.Message, File: file, Line: line})
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
	return len(v.broken()) > 0 || slices.ContainsFunc(v.cases(), func(c testCase) bool { return !c.Passed })
}

func (v verdict) results(t *terminal.Terminal, verbose bool) {
	broken := v.broken()
	for _, d := range broken {
		finding(t, v.Placed(d))
	}
	passed, all := 0, v.cases()
	for _, c := range all {
		word, colour := "FAIL", terminal.Bad
		if c.Passed {
			passed++
			word, colour = "PASS", terminal.Good
		}
		if c.Passed && !verbose {
			continue
		}
		t.Printf("%s  %s  (%s:%d)\n", t.Paint(colour, word, 0), terminal.Plain(c.Name), c.File, c.Line)
		if c.Message != "" {
			t.Printf("      %s\n", terminal.Plain(c.Message))
		}
	}
	if len(broken) > 0 {
		t.Printf("%s: %s above; so not all can be run, and %d of the %d that could be passed\n",
			t.Paint(terminal.Bad, "failed", 0), terminal.Count(len(broken), "error"), passed, len(all))
		return
	}
	c := v.report.Coverage
	t.Printf("%d of %d passed; exercised: %d of %d rules, %d of %d effects, %d of %d lines of Rego\n",
		passed, len(all), c.Exercised, c.Rules, c.Shown, c.Effects, c.Evaluated, c.Lines)
	for _, missed := range []struct {
		what  string
		names []string
	}{{"rules", c.MissedRules}, {"effects", c.MissedEffects}, {"lines", c.MissedLines}} {
		if verbose && len(missed.names) > 0 {
			t.Printf("%s that nothing exercises: %s\n", missed.what, strings.Join(missed.names, ", "))
		}
	}
}

// The types are the part of JUnit's XML that CI systems agree on.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Line    int           `xml:"line,attr,omitempty"`
	Failure *junitFailure `xml:"failure,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
}

func (s *junitSuite) add(c testCase) {
	one := junitCase{Name: c.Name, Class: s.Name, File: c.File, Line: c.Line}
	if !c.Passed {
		s.Failures++
		one.Failure = &junitFailure{Message: c.Message}
	}
	s.Tests++
	s.Cases = append(s.Cases, one)
}

// writeJUnit writes all results to a file. What keeps the bundle from being compiled is a failed case of its own suite.
func (v verdict) writeJUnit(path string) error {
	scenarios, tests, compile := junitSuite{Name: "scenarios"}, junitSuite{Name: "rego"}, junitSuite{Name: "compile"}
	for _, c := range v.cases() {
		if c.scenario {
			scenarios.add(c)
		} else {
			tests.add(c)
		}
	}
	for _, d := range v.broken() {
		d = v.Placed(d)
		compile.add(testCase{Name: d.Code + " " + d.Rule, File: d.File, Line: d.Line, Message: d.Message + " (" + d.Hint + ")"})
	}
	text, err := xml.MarshalIndent(junitSuites{Suites: []junitSuite{compile, scenarios, tests}}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte(xml.Header), append(text, '\n')...), 0o644) //nolint:gosec // CI systems read it as another user.
}
