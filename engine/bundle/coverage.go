// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/lifecycle"
	"github.com/metalaw/metalaw/engine/lifecycle/scenario"
)

// Coverage is how much of a bundle its scenarios and tests show.
type Coverage struct {
	// Rules is how many rules the lifecycle has, and Exercised how many of them some scenario moved by.
	Rules     int `json:"rules"`
	Exercised int `json:"exercised"`
	// MissedRules names the others, in the order of the lifecycle.
	MissedRules []string `json:"missedRules,omitempty"`
	// Effects is how many effects the states ensure, and Shown how many of them some scenario ensured.
	Effects int `json:"effects"`
	Shown   int `json:"shown"`
	// MissedEffects names the others, as State.Effect.
	MissedEffects []string `json:"missedEffects,omitempty"`
	// Lines is how many lines of Rego tests can evaluate, and Evaluated how many they did.
	Lines     int `json:"lines"`
	Evaluated int `json:"evaluated"`
	// MissedLines names the others, as file:line or file:line-line.
	MissedLines []string `json:"missedLines,omitempty"`
}

// percent is the share of a part in a whole; all of nothing is all.
func percent(part, whole int) int {
	if whole == 0 {
		return 100
	}
	return 100 * part / whole
}

// lifecycleRules lists the names of all exits and interrupts, each once, in the order of the lifecycle.
func lifecycleRules(l *lifecycle.Lifecycle) []string {
	var names []string
	for _, e := range l.Edges() {
		if !slices.Contains(names, e.Rule) {
			names = append(names, e.Rule)
		}
	}
	return names
}

// coverLifecycle measures what the scenarios showed. A rule that can never fire is not asked for: verification reports it.
func (c *Coverage) coverLifecycle(l *lifecycle.Lifecycle, results []scenario.Result, never map[string]bool) {
	fired := scenario.Rules(results)
	for _, rule := range lifecycleRules(l) {
		if never[rule] {
			continue
		}
		c.Rules++
		if slices.Contains(fired, rule) {
			c.Exercised++
		} else {
			c.MissedRules = append(c.MissedRules, rule)
		}
	}
	shown := map[string]bool{}
	for _, r := range results {
		for _, e := range r.Decision.Effects {
			shown[string(r.State)+"."+e.Name] = true
		}
	}
	for _, s := range l.States() {
		for _, name := range l.EnsuredEffects(s) {
			c.Effects++
			if key := string(s) + "." + name; shown[key] {
				c.Shown++
			} else {
				c.MissedEffects = append(c.MissedEffects, key)
			}
		}
	}
}

// missedRules reports the rules that no scenario exercised.
func (c *Coverage) missedRules(places []lifecycle.RulePlace) diag.List {
	var found diag.List
	for _, rule := range c.MissedRules {
		var at lifecycle.RulePlace
		if i := slices.IndexFunc(places, func(p lifecycle.RulePlace) bool { return p.Rule == rule }); i >= 0 {
			at = places[i]
		}
		found = append(found, diag.Diagnostic{Severity: diag.Error, Code: "coverage-rule", File: LifecycleFile, Line: at.Line, Column: at.Column,
			Rule: rule, Message: "no scenario moves by this rule",
			Hint: fmt.Sprintf("add a scenario to %s that expects {to: %s, rule: %s}", ScenariosFile, at.To, rule)})
	}
	return found
}

// missedEffects reports that scenarios show fewer effects than the bundle itself asks for.
func (c *Coverage) missedEffects(floor int) diag.List {
	if have := percent(c.Shown, c.Effects); have < floor {
		return diag.List{{Severity: diag.Error, Code: "coverage-effects", File: ScenariosFile, Line: 1, Column: 1,
			Message: fmt.Sprintf("scenarios show %d of %d effects, and the bundle asks for %d percent", c.Shown, c.Effects, floor),
			Hint:    "add scenarios that expect stays: true with ensures: for " + some(c.MissedEffects)}}
	}
	return nil
}

// some names the first few of many.
func some(names []string) string {
	const few = 6
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
