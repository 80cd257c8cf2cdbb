// SPDX-License-Identifier: Apache-2.0

// Package verify checks a compiled lifecycle without running it: over all facts that can occur, and over all ways from state
// to state. It is pure and deterministic.
//
// Every comparison in a definition or a safety rule becomes a question with a yes or a no; logic over those becomes decision
// diagrams, and what cannot occur together is taken out: by the form of the facts (an enum has one word, an age that has
// reached 30m has reached 15m) and by the vocabulary's axioms. So "never" and "always" are proofs over all facts, and each
// finding that says "possible" comes with facts on which the lifecycle itself has decided.
//
// What it assumes: every fact was observed; an age is never negative, and a duration that a fact holds is above zero; between
// two decisions anything outside may change, and the marks of a server in any state may be any. What it cannot see: inside
// expressions that are no comparison of a fact with a literal or with another fact (arithmetic, functions on strings); those
// may be anything that they could be by themselves, and the report names them.
package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/bdd"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// Finding is one thing that is wrong, doubtful or worth knowing.
type Finding struct {
	diag.Diagnostic
	// Counterexample is facts by which it shows; nil where there can be none, as of a rule that never fires.
	Counterexample *Counterexample `json:"counterexample,omitempty"`
}

// Report is the outcome of a check.
type Report struct {
	Findings []Finding
	// Undecided says in words what the check could not see into. Where it is not empty, the absence of a finding is no
	// proof as far as these reach.
	Undecided []string
}

// Diagnostics lists the findings without their counterexamples.
func (r Report) Diagnostics() diag.List {
	var all diag.List
	for _, f := range r.Findings {
		all = append(all, f.Diagnostic)
	}
	return all
}

// Scenarios renders the counterexamples of the findings as a file scenarios.yaml that says what the lifecycle decides now;
// empty where there are none.
func (r Report) Scenarios() string {
	var b strings.Builder
	seen := map[string]bool{}
	for _, f := range r.Findings {
		if f.Counterexample == nil || !f.Counterexample.Confirmed {
			continue
		}
		name := fmt.Sprintf("%s: %s", f.Code, f.Message)
		for n := 2; seen[name]; n++ {
			name = fmt.Sprintf("%s: %s (%d)", f.Code, f.Message, n)
		}
		seen[name] = true
		b.WriteString(f.Counterexample.Scenario(name))
	}
	if b.Len() == 0 {
		return ""
	}
	return "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Scenarios\nscenarios:\n" + b.String()
}

// maxNodes bounds the size of the decision diagrams. The shipped lifecycles need some 80,000.
const maxNodes = 1 << 19

// Check examines a lifecycle. The same lifecycle always gives the same report. What is assumed holds besides the
// vocabulary's axioms, such as what the settings of the lifecycle's bundle say; it rules facts out of counterexamples, and
// does not make a rule or a state superfluous that other settings need.
func Check(l *lifecycle.Lifecycle, assumed ...engine.Axiom) Report {
	return check(l, maxNodes, assumed)
}

func check(l *lifecycle.Lifecycle, limit int, assumed []engine.Axiom) Report {
	var known []*lifecycle.Expression
	for _, axiom := range assumed {
		x, err := l.Compile("axiom", axiom.Holds)
		if err != nil {
			return Report{Undecided: []string{err.Error()}, Findings: []Finding{undecided(l.AST(), err.Error())}}
		}
		known = append(known, x)
	}
	c := &checker{model: newModel(l, limit, known)}
	c.checkGraph()
	for _, v := range c.order {
		c.checkSafety(v)
		c.checkErrors(v)
		c.checkGuards(v)
		c.checkQuarrels(v)
		c.checkOrder(v)
	}
	c.checkInitial()
	c.checkMigrations()
	c.checkRules()
	c.checkOperations()
	c.checkDefinitions()
	c.checkRetries()
	c.checkForfeits()
	c.newSpin(false).checkLivelock()
	c.checkDeadlines()
	if err := c.Err(); err != nil { // what was found with a diagram that was cut off means nothing
		c.findings = []Finding{undecided(c.ast, err.Error())}
		c.open = append(c.open, err.Error())
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Message, b.Message))
	})
	return Report{Findings: c.findings, Undecided: c.undecided()}
}

// undecided is the finding that keeps a lifecycle which is too large to be checked from being taken for one that is safe.
func undecided(a *lifecycle.AST, why string) Finding {
	return Finding{Diagnostic: diag.Diagnostic{Severity: diag.Error, Code: CodeUndecided, File: a.File,
		Message: "the lifecycle could not be verified: " + why, Hint: "use fewer or simpler definitions"}}
}

// checker is one check in progress.
type checker struct {
	*model
	findings []Finding
	open     []string
	// overlaps counts the pairs of exits that can hold at once.
	overlaps int
}

const unconfirmed = "no facts could be constructed that show it, because it depends on expressions that are not taken apart; " +
	"compare facts with literals to have it decided"

// addShown adds a finding where facts in a state show it.
func (c *checker) addShown(v *view, on bdd.Ref, shows func(engine.Decision) bool,
	severity diag.Severity, code string, at lifecycle.Place, rule, hint, format string, args ...any,
) {
	if x := c.exampleIn(v, c.And(on, c.assumed), shows); x != nil {
		c.add(severity, code, at, rule, x, hint, format, args...)
	}
}

// add adds a finding. Its hint says as well where it may be of facts that do not exist.
func (c *checker) add(severity diag.Severity, code string, at lifecycle.Place, rule string, x *Counterexample, hint, format string, args ...any) {
	if x != nil && !x.Confirmed {
		hint += "; " + unconfirmed
	}
	c.findings = append(c.findings, Finding{Counterexample: x, Diagnostic: diag.Diagnostic{Severity: severity, Code: code,
		File: c.ast.File, Line: at.Line, Column: at.Column, Rule: rule, Message: fmt.Sprintf(format, args...), Hint: hint}})
}

// undecided lists what could not be seen into.
func (c *checker) undecided() []string {
	open := c.open
	if c.overlaps > maxOverlaps {
		open = append(open, fmt.Sprintf("%d pairs of exits can hold at once; %d of them are told", c.overlaps, maxOverlaps))
	}
	for _, p := range c.primitives {
		if p.kind == isOpaque {
			open = append(open, fmt.Sprintf("%s is not taken apart: it may be true or false whatever else holds", p.word))
		}
	}
	for _, g := range c.groups {
		if !g.complete {
			var names []string
			for _, f := range g.facts {
				names = append(names, c.words.Facts[f].Name)
			}
			open = append(open, fmt.Sprintf("%s are compared in too many ways: which of them go together was not found out",
				strings.Join(names, ", ")))
		}
	}
	return open
}
