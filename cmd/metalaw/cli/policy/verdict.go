// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/policy/source"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/lifecycle/verify"
	"github.com/metalaw/metalaw/policies"
)

// examination is what verify and test share: where the bundle is, and in which form its verdict is told.
type examination struct {
	from   source.Flags
	output terminal.Output
}

// examine reads the bundle and holds it to all that the manager holds it to.
func (e *examination) examine(ctx context.Context, t *terminal.Terminal) (verdict, error) {
	m, err := e.from.Read(ctx, t.In)
	if none, ok := errors.AsType[*source.LoadError](err); ok {
		return verdict{Bundle: none.Bundle, report: bundle.Report{Found: none.Found}}, nil
	}
	if err != nil {
		return verdict{}, err
	}
	b, report, err := policies.Accept(ctx, m.Files)
	return verdict{Bundle: m, bundle: b, report: report}, err
}

// tell writes a verdict; text writes it for people. The error says that not all is well.
func (e *examination) tell(t *terminal.Terminal, v verdict, well bool, text func()) error {
	var document any = v.json()
	if e.output.String() == terminal.AsSARIF {
		document = v.sarif()
	}
	e.output.Show(t, document, text)
	if !well {
		return terminal.ErrIncomplete
	}
	return nil
}

type verdict struct {
	*source.Bundle
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

func (v verdict) text(t *terminal.Terminal, notes bool) {
	for _, d := range v.report.Found {
		if (d.Severity == diag.Info && !notes) || d.Code == verify.CodeNotProven { // what is not proven is told below in any case
			continue
		}
		finding(t, v.Placed(d))
		if x := v.counterexample(d); x != nil && d.Severity != diag.Info {
			t.Printf("    for example: %s\n", strings.ReplaceAll(x.String(), "\n", "\n        "))
		}
	}
	for _, words := range v.report.Verification.Undecided {
		t.Printf("not proven: %s\n", terminal.Plain(words))
	}
	hidden := ""
	if n := v.count(diag.Info); n > 0 && !notes {
		hidden = fmt.Sprintf(", %s (--notes)", terminal.Count(n, "note"))
	}
	if v.bundle == nil {
		t.Printf("%s: %s: %s, %s%s\n", v.Name, t.Paint(terminal.Bad, "refused", 0),
			terminal.Count(v.count(diag.Error), "error"), terminal.Count(v.count(diag.Warning), "warning"), hidden)
		return
	}
	t.Printf("%s: %s: bundle %s %s, %d states, %d rules, %d scenarios, %d Rego tests, %s%s\nrevision %s, digest %s\n",
		v.Name, t.Paint(terminal.Good, "accepted", 0), v.bundle.Name, v.bundle.Version, len(v.bundle.Lifecycle.States()), v.report.Coverage.Rules,
		len(v.report.Scenarios), len(v.report.Tests), terminal.Count(v.count(diag.Warning), "warning"), hidden,
		v.bundle.Revision.Name, v.bundle.Revision.Digest)
	if taken := v.taken(); len(taken) > 0 {
		t.Printf("taken from the built-in default, because the bundle leaves them out: %s\n", strings.Join(taken, ", "))
	}
}

func (v verdict) taken() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(v.report.Files)) {
		if _, own := v.Files[name]; !own {
			names = append(names, name)
		}
	}
	return names
}

// counterexample is the facts by which a finding of verification shows; nil where there are none.
func (v verdict) counterexample(d diag.Diagnostic) *verify.Counterexample {
	for _, f := range v.report.Verification.Findings {
		if f.Diagnostic == d {
			return f.Counterexample
		}
	}
	return nil
}

// examples are the facts by which findings show, as scenarios: those of notes only where notes are told as well.
func (v verdict) examples(notes bool) string {
	told := v.report.Verification
	if !notes {
		told.Findings = slices.DeleteFunc(slices.Clone(told.Findings), func(f verify.Finding) bool { return f.Severity == diag.Info })
	}
	return told.Scenarios()
}

var colours = map[diag.Severity]terminal.Colour{diag.Error: terminal.Bad, diag.Warning: terminal.Wary}

// finding writes a finding as compilers do, with the hint on a line of its own.
func finding(t *terminal.Terminal, d diag.Diagnostic) {
	where := d.File
	if d.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", d.File, d.Line, d.Column)
	}
	rule := ""
	if d.Rule != "" {
		rule = d.Rule + ": "
	}
	t.Printf("%s: %s: %s%s [%s]\n", where, t.Paint(colours[d.Severity], string(d.Severity), 0), rule, terminal.Plain(d.Message), d.Code)
	if d.Hint != "" {
		t.Printf("    %s\n", terminal.Plain(d.Hint))
	}
}

type jsonReport struct {
	Source    string          `json:"source"`
	Accepted  bool            `json:"accepted"`
	Bundle    string          `json:"bundle,omitempty"`
	Version   string          `json:"version,omitempty"`
	Revision  string          `json:"revision,omitempty"`
	Digest    string          `json:"digest,omitempty"`
	Findings  []jsonFinding   `json:"findings"`
	Scenarios []testCase      `json:"scenarios"`
	Tests     []testCase      `json:"tests"`
	Coverage  bundle.Coverage `json:"coverage"`
}

// jsonFinding is a finding, with the facts by which it shows and what is decided on them, as an entry of scenarios.yaml.
type jsonFinding struct {
	diag.Diagnostic
	Counterexample string `json:"counterexample,omitempty"`
}

func (v verdict) jsonFinding(d diag.Diagnostic) jsonFinding {
	if x := v.counterexample(d); x != nil {
		return jsonFinding{v.Placed(d), x.Scenario(d.Code + ": " + d.Message)}
	}
	return jsonFinding{Diagnostic: v.Placed(d)}
}

func (v verdict) json() jsonReport {
	r := jsonReport{Source: v.Name, Accepted: v.bundle != nil, Findings: []jsonFinding{}, Coverage: v.report.Coverage,
		Scenarios: []testCase{}, Tests: []testCase{}}
	if v.bundle != nil {
		r.Bundle, r.Version = v.bundle.Name, v.bundle.Version
		r.Revision, r.Digest = v.bundle.Revision.Name, v.bundle.Revision.Digest
	}
	for _, d := range v.report.Found {
		r.Findings = append(r.Findings, v.jsonFinding(d))
	}
	for _, c := range v.cases() {
		if c.scenario {
			r.Scenarios = append(r.Scenarios, c)
		} else {
			r.Tests = append(r.Tests, c)
		}
	}
	return r
}
