// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/policies"
)

// form is the form of an output. It implements pflag.Value.
type form struct {
	word  string
	words []string
}

func (f *form) String() string { return f.word }

// Type implements pflag.Value.
func (f *form) Type() string { return strings.Join(f.words, "|") }

// Set implements pflag.Value.
func (f *form) Set(word string) error {
	if !slices.Contains(f.words, word) {
		return fmt.Errorf("%q is none of %s", word, strings.Join(f.words, ", "))
	}
	f.word = word
	return nil
}

// registerForm adds the flag -o; the first word is what it is without.
func registerForm(cmd *cobra.Command, words ...string) *form {
	f := &form{word: words[0], words: words}
	cmd.Flags().VarP(f, "output", "o", "form of the output: "+strings.Join(words, ", "))
	// The error is about a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	return f
}

func verifyCommand() *cobra.Command {
	var from source
	var notes bool
	var examples string
	cmd := &cobra.Command{
		Use:   "verify -f DIR|FILE|-",
		Short: "Say whether a bundle could be accepted, and everything that is wrong with it",
		Long: "Holds a bundle to all that the manager holds it to before it may govern: strict parsing, types, limits, static verification of the " +
			"lifecycle, the bundle's own scenarios and Rego tests, and their coverage. All problems are told at once, each with its place, its " +
			"cause and its remedy. What the bundle leaves out is taken from the built-in default.\n\n" +
			"Exit codes: 0 the bundle could be accepted; 1 it could not; 2 the command line makes no sense.",
		Example: "  {{.}} policy verify -f ./fleet\n  kubectl kustomize ./fleet | {{.}} policy verify -f -\n" +
			"  {{.}} policy verify -f ./fleet -o sarif >fleet.sarif",
		Args: usage.NoArgs,
	}
	from.register(cmd)
	output := registerForm(cmd, "text", "json", "sarif")
	cmd.Flags().BoolVar(&notes, "notes", false, "also say what is merely worth knowing, such as where the order of two rules decides")
	cmd.Flags().StringVar(&examples, "examples", "", "also write the facts by which verification's findings show to a file, as scenarios")
	_ = cmd.MarkFlagFilename("examples", "yaml") // the error is about a flag that does not exist
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t := terminal.Of(cmd)
		m, err := from.read(t.In)
		if err != nil {
			return err
		}
		b, report, err := policies.Accept(cmd.Context(), m.files)
		if err != nil {
			return err
		}
		v := verdict{manuscript: m, bundle: b, report: report}
		if examples != "" {
			if err := os.WriteFile(examples, []byte(report.Verification.Scenarios()), 0o644); err != nil { //nolint:gosec // For a repository.
				return err
			}
		}
		switch output.word {
		case "json":
			err = terminal.JSON(t.Out, v.json())
		case "sarif":
			err = terminal.JSON(t.Out, v.sarif())
		default:
			err = v.text(t, notes)
		}
		if err == nil && b == nil {
			err = terminal.ErrIncomplete
		}
		return err
	}
	return cmd
}

// verdict is what there is to say of a bundle.
type verdict struct {
	*manuscript
	bundle *bundle.Bundle
	report bundle.Report
}

func (v verdict) count(s diag.Severity) int {
	n := 0
	for _, d := range v.report.Found {
		if d.Severity == s {
			n++
		}
	}
	return n
}

// placed is a finding with its place in what was read.
func (v verdict) placed(d diag.Diagnostic) diag.Diagnostic {
	d.File, d.Line, d.Column = v.place(d.File, d.Line, d.Column)
	return d
}

func (v verdict) text(t *terminal.Terminal, notes bool) error {
	for _, d := range v.report.Found {
		if d.Severity == diag.Info && !notes {
			continue
		}
		if err := finding(t, v.placed(d)); err != nil {
			return err
		}
		if err := v.example(t, d); err != nil {
			return err
		}
	}
	for _, words := range v.report.Verification.Undecided {
		if _, err := fmt.Fprintf(t.Out, "not proven: %s\n", terminal.Plain(words)); err != nil {
			return err
		}
	}
	hidden := ""
	if n := v.count(diag.Info); n > 0 && !notes {
		hidden = fmt.Sprintf(", %d notes (--notes)", n)
	}
	if v.bundle == nil {
		_, err := fmt.Fprintf(t.Out, "%s: %s: %d errors, %d warnings%s\n", v.name, t.Paint(terminal.Bad, "refused", 0),
			v.count(diag.Error), v.count(diag.Warning), hidden)
		return err
	}
	c := v.report.Coverage
	_, err := fmt.Fprintf(t.Out, "%s: %s: bundle %s %s, %d states, %d rules, %d scenarios, %d Rego tests, %d warnings%s\nrevision %s, digest %s\n",
		v.name, t.Paint(terminal.Good, "accepted", 0), v.bundle.Name, v.bundle.Version, len(v.bundle.Lifecycle.States()), c.Rules,
		len(v.report.Scenarios), len(v.report.Tests), v.count(diag.Warning), hidden, v.bundle.Revision.Name, v.bundle.Revision.Digest)
	return err
}

// example shows the facts by which a finding of verification shows, below it.
func (v verdict) example(t *terminal.Terminal, d diag.Diagnostic) error {
	if d.Severity == diag.Info {
		return nil
	}
	for _, f := range v.report.Verification.Findings {
		if f.Diagnostic == d && f.Counterexample != nil {
			_, err := fmt.Fprintf(t.Out, "    for example: %s\n", strings.ReplaceAll(f.Counterexample.String(), "\n", "\n        "))
			return err
		}
	}
	return nil
}

var colours = map[diag.Severity]terminal.Colour{diag.Error: terminal.Bad, diag.Warning: terminal.Wary}

// finding writes a finding as compilers do, with the hint on a line of its own.
func finding(t *terminal.Terminal, d diag.Diagnostic) error {
	where := d.File
	if d.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", d.File, d.Line, d.Column)
	}
	rule := ""
	if d.Rule != "" {
		rule = d.Rule + ": "
	}
	text := fmt.Sprintf("%s: %s: %s%s [%s]\n", where, t.Paint(colours[d.Severity], string(d.Severity), 0), rule, terminal.Plain(d.Message), d.Code)
	if d.Hint != "" {
		text += "    " + terminal.Plain(d.Hint) + "\n"
	}
	_, err := io.WriteString(t.Out, text)
	return err
}

// jsonReport is the form of verify -o json and test -o json.
type jsonReport struct {
	Source    string            `json:"source"`
	Accepted  bool              `json:"accepted"`
	Bundle    string            `json:"bundle,omitempty"`
	Version   string            `json:"version,omitempty"`
	Revision  string            `json:"revision,omitempty"`
	Digest    string            `json:"digest,omitempty"`
	Findings  []diag.Diagnostic `json:"findings"`
	Scenarios []jsonTest        `json:"scenarios"`
	Tests     []jsonTest        `json:"tests"`
	Coverage  bundle.Coverage   `json:"coverage"`
}

type jsonTest struct {
	Name    string `json:"name"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Passed  bool   `json:"passed"`
	Message string `json:"message,omitempty"`
}

func (v verdict) json() jsonReport {
	r := jsonReport{Source: v.name, Accepted: v.bundle != nil, Findings: []diag.Diagnostic{}, Coverage: v.report.Coverage,
		Scenarios: []jsonTest{}, Tests: []jsonTest{}}
	if v.bundle != nil {
		r.Bundle, r.Version = v.bundle.Name, v.bundle.Version
		r.Revision, r.Digest = v.bundle.Revision.Name, v.bundle.Revision.Digest
	}
	for _, d := range v.report.Found {
		r.Findings = append(r.Findings, v.placed(d))
	}
	for _, c := range v.cases() {
		one := jsonTest{Name: c.name, Passed: c.passed, Message: c.message, File: c.file, Line: c.line}
		if c.scenario {
			r.Scenarios = append(r.Scenarios, one)
		} else {
			r.Tests = append(r.Tests, one)
		}
	}
	return r
}
