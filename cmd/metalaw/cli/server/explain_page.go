// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/internal/freeze"
)

func (e *explanation) text(t *terminal.Terminal) {
	colour := terminal.Good
	if e.HeldBy != nil {
		colour = terminal.Wary
	}
	head := "Server " + e.Name + " is " + t.Paint(colour, terminal.Plain(cmp.Or(e.State, "in no state yet")), 0)
	if e.Since != nil {
		head += " since " + t.Ago(*e.Since)
	}
	if e.Rule != "" {
		head += " (" + terminal.Plain(e.Rule) + ")"
	}
	t.Printf("%s\n\n", head)
	t.Field("It means", e.Means)
	t.Field("It says", e.Says)
	if d := e.Deadline; d != nil {
		t.Field("Until", d.words())
	}
	t.Field("Released", e.Released.words())
	if e.Decommission != nil {
		t.Field("Out of use", e.Decommission.words())
	}
	t.Field("At fault", e.Faulty)
	if e.Maintenance != nil {
		t.Field("Handed to", e.Maintenance.Words(t))
	}
	for i := range e.MaintenanceWaiting {
		t.Field("Wanted by", e.MaintenanceWaiting[i].Words())
	}
	if e.HeldBy != nil {
		t.Field("Held by", e.HeldBy.words(t))
	}
	for _, c := range e.Conditions {
		t.Field("Besides", c.words(t))
	}
	e.asked(t)
	if e.Request != nil {
		t.Field("Request", requestWords(t, e.Request))
	}
	if e.Power != "" {
		t.Field("Power", e.Power+", as the manager stored it last")
	}
	t.Field("Policy", e.Revision)
	t.Field("Marks", strings.Join(e.Marks, ", "))
	if e.Since != nil {
		t.Field("Entry", fmt.Sprintf("%d; %s since the last rest", e.Entry, retries(e.Retries)))
	}
	for i := range e.Freezes {
		t.Field("Freeze", freeze.Words(&e.Freezes[i]))
	}
	t.Field("Breaker", e.Breaker)
	for _, b := range e.Budgets {
		t.Field("Budget", b.words())
	}
	e.rules(t)
	e.moves(t)
	t.Notes(e.Notes)
}

func retries(n int32) string {
	if n == 1 {
		return "1 retry"
	}
	return fmt.Sprintf("%d retries", n)
}

func (c condition) words(t *terminal.Terminal) string {
	return strings.TrimSuffix(fmt.Sprintf("%s is %s since %s (%s): %s", c.Type, c.Status, t.Ago(c.Since), c.Reason, c.Message), ": ")
}

func (e *explanation) asked(t *terminal.Terminal) {
	if e.LeftAlone {
		t.Field("Left alone", "the annotation "+v1alpha1.OperationAnnotation+" asks the manager to ignore the server")
	}
	if e.Deleted != nil {
		t.Field("Deleted", "its deletion was asked for "+t.Ago(*e.Deleted)+" ago")
	}
	if e.Asked != "" {
		t.Field("Asked for", e.Asked+"; the manager has not taken it in yet")
	}
	if op := e.Operation; op != nil {
		text := fmt.Sprintf("%s is %s, asked for %s ago", op.Name, op.State, t.Ago(op.StartedAt.Time))
		if op.By != "" {
			text += " by " + op.By
		}
		for _, words := range []string{op.Reason, op.Message} {
			if words != "" {
				text += "; " + words
			}
		}
		t.Field("Operation", text)
	}
}

func requestWords(t *terminal.Terminal, r *v1alpha1.PowerRequest) string {
	text := fmt.Sprintf("%s, asked of the BMC %s ago", r.Action, t.Ago(r.AskedAt.Time))
	if r.Attempts > 1 {
		text += fmt.Sprintf(", attempt %d", r.Attempts)
	}
	switch {
	case r.ShownAt != nil:
		return text + "; the BMC showed it " + t.Ago(r.ShownAt.Time) + " ago"
	case r.Refusals > 0:
		return text + fmt.Sprintf("; the BMC refused it (%d in a row): %s", r.Refusals, r.Refusal)
	default:
		return text + "; the BMC has not shown it yet"
	}
}

func (d *deadline) words() string {
	text := fmt.Sprintf("%s moves it to %s", d.Rule, d.To)
	if d.At != nil {
		return text + fmt.Sprintf(" at %s, in %s; %s count so far", d.At.Format(time.RFC3339), d.Remaining.Duration, d.Counted.Duration)
	}
	text += fmt.Sprintf(" after %s more; %s count so far, and time does not count now", d.Remaining.Duration, d.Counted.Duration)
	if d.Stopped != "" {
		text += " (" + d.Stopped + ")"
	}
	return text
}

func (b budget) words() string {
	text := fmt.Sprintf("%s allows %d %s", b.Name, b.Max, b.Action)
	if b.MaxPercent > 0 {
		text = fmt.Sprintf("%s allows %d or %d %% of its servers, the larger, %s", b.Name, b.Max, b.MaxPercent, b.Action)
	}
	if b.Per != "" {
		text += fmt.Sprintf(" for %s=%s", b.Per, b.Value)
	}
	if b.Used == nil {
		return text + "; the manager does not say that it is used up"
	}
	return text + fmt.Sprintf("; used up: %d count", *b.Used)
}

func (e *explanation) rules(t *terminal.Terminal) {
	if len(e.Rules) == 0 {
		return
	}
	t.Printf("\nWays out of %s:\n", terminal.Plain(e.State))
	t.Table([]string{"RULE", "TO", "NOW", "WHEN"}, lists.Map(e.Rules, func(w *wayOut) []string { return []string{w.Rule, w.To, w.now(), w.words()} }))
}

// asksBMC stands for what depends on what the BMC says, which this command does not ask.
const asksBMC = "depends on the BMC"

// now says in a word whether the rule matches.
func (w wayOut) now() string {
	if w.Is == ruleWaits {
		return "waits " + w.Remaining.Round(time.Second).String()
	}
	return map[string]string{ruleMatches: "yes", ruleClosed: "no", ruleBehind: "another first", ruleUnknown: asksBMC}[w.Is]
}

// words are what the rule asks for, and what is so.
func (w wayOut) words() string {
	var is []string
	for _, name := range slices.Sorted(maps.Keys(w.Atoms)) {
		if value := w.Atoms[name]; value == ruleUnknown {
			is = append(is, name+" "+asksBMC)
		} else {
			is = append(is, name+" is "+value)
		}
	}
	words := w.When
	if w.After != "" {
		words = strings.TrimSuffix("after "+w.After+"; "+words, "; ")
	}
	if len(is) == 0 {
		return words
	}
	return fmt.Sprintf("%s (%s)", words, strings.Join(is, ", "))
}

// moves writes the last moves, the newest first.
func (e *explanation) moves(t *terminal.Terminal) {
	if len(e.History) == 0 {
		return
	}
	var rows [][]string
	for _, m := range slices.Backward(e.History) {
		why := m.Rule
		if m.By != "" {
			why += " by " + m.By
		}
		if m.Reason != "" {
			why += ": " + m.Reason
		}
		rows = append(rows, []string{t.Ago(m.At.Time) + " ago", cmp.Or(string(m.From), "-"), string(m.To), why})
	}
	t.Printf("\nLast moves:\n")
	t.Table([]string{"WHEN", "FROM", "TO", "RULE"}, rows)
}
