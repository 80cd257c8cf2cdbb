// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// Result is how one scenario ended.
type Result struct {
	Name string
	Line int
	// Passed says that what was decided is what was expected.
	Passed bool
	// Message says what was decided instead; empty where it passed.
	Message string
	// State and Decision are what the scenario showed.
	State    engine.State
	Decision engine.Decision
}

// Run holds the lifecycle to the scenarios. One that does not hold is a finding at its expectation, which says what was
// decided instead and which guards decided that.
func Run(fileName string, all []*Scenario, l *lifecycle.Lifecycle) ([]Result, diag.List) {
	var results []Result
	var found diag.List
	for _, s := range all {
		d := l.Decide(s.given)
		result := Result{Name: s.Name, Line: s.Line, State: s.State, Decision: d, Passed: s.Expect.met(d)}
		if !result.Passed {
			result.Message = fmt.Sprintf("it expects %s; %s", s.Expect, Outcome(d))
			if why := because(l.Explain(s.given), s.Expect.Rule); why != "" {
				result.Message += "; " + why
			}
			found = append(found, diag.Diagnostic{Severity: diag.Error, Code: "scenario-failed", File: fileName, Line: s.expectAt.Line,
				Column: s.expectAt.Column, Rule: s.Name, Message: "the scenario does not hold: " + result.Message,
				Hint: "correct the lifecycle, or what the scenario gives or expects"})
		}
		results = append(results, result)
	}
	return results, found
}

// met says whether a decision is what was expected.
func (e Expectation) met(d engine.Decision) bool {
	switch {
	case e.Halts != "":
		return d.Halt != nil && d.Halt.Cause == e.Halts && (e.Rule == "" || e.Rule == d.Halt.Rule)
	case d.Halt != nil:
		return false
	case e.To != "":
		return d.Moves() && d.To == e.To && (e.Rule == "" || e.Rule == d.Rule)
	}
	awaits := ""
	if d.Awaits != nil {
		awaits = d.Awaits.Effect
	}
	return !d.Moves() && (!e.EnsuresSaid || slices.Equal(e.Ensures, effectNames(d))) && (e.Awaits == "" || e.Awaits == awaits)
}

// Outcome says in words what was decided.
func Outcome(d engine.Decision) string {
	switch {
	case d.Halt != nil:
		return fmt.Sprintf("it is halted by %s: %s", d.Halt.Cause, d.Halt.Message)
	case d.Moves():
		return fmt.Sprintf("it moves to %s by %s", d.To, d.Rule)
	}
	text := fmt.Sprintf("it stays in %s and ensures %s", d.From, list(effectNames(d)))
	if d.Awaits != nil {
		text += fmt.Sprintf(", while %s waits for %s", d.Awaits.Effect, d.Awaits.Rule)
	}
	return text
}

// because names the guards that decided: that of the rule that was expected, and that of the rule that moved.
func because(d engine.Decision, expected string) string {
	var parts []string
	for _, step := range d.Trace {
		if step.Rule == "" || (step.Rule != expected && (step.Rule != d.Rule || !d.Moves())) {
			continue
		}
		if text := guardWords(step); !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "; ")
}

func guardWords(step engine.TraceStep) string {
	if step.Result == "waiting" && step.Remaining > 0 {
		return fmt.Sprintf("%s has still to wait %s", step.Rule, step.Remaining)
	}
	var values []string
	for _, name := range slices.Sorted(maps.Keys(step.Atoms)) {
		if v := step.Atoms[name]; v != "unknown" { // not asked
			values = append(values, name+" is "+v)
		}
	}
	text := fmt.Sprintf("%s is %s", step.Rule, step.Result)
	if len(values) > 0 {
		text += ", as " + strings.Join(values, " and ")
	}
	return text
}

// Rules lists the rules by which some scenario moved, sorted.
func Rules(results []Result) []string {
	fired := map[string]bool{}
	for _, r := range results {
		if r.Decision.Moves() {
			fired[r.Decision.Rule] = true
		}
	}
	return slices.Sorted(maps.Keys(fired))
}
