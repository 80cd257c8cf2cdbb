// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/internal/freeze"
)

// page writes text for people.
type page struct {
	*terminal.Terminal
	now time.Time
	err error
}

func (p *page) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.Out, format+"\n", args...)
	}
}

// field is one line with a name before it.
func (p *page) field(name, text string) {
	if text != "" {
		p.line("%-12s %s", name+":", terminal.Plain(text))
	}
}

// table is a table under a title; nothing where it has no rows.
func (p *page) table(title string, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	p.line("")
	p.line("%s", title)
	if p.err == nil {
		p.err = terminal.Table(p.Out, head, rows)
	}
}

func (p *page) ago(t time.Time) string { return duration.HumanDuration(p.now.Sub(t)) }

// explained writes an explanation.
func (p *page) explained(e *explanation) error {
	colour := terminal.Good
	if e.HeldBy != nil {
		colour = terminal.Wary
	}
	head := "Server " + e.Name + " is " + p.Paint(colour, terminal.Plain(cmp.Or(e.State, "in no state yet")), 0)
	if e.Since != nil {
		head += " since " + p.ago(*e.Since)
	}
	if e.Rule != "" {
		head += " (" + terminal.Plain(e.Rule) + ")"
	}
	p.line("%s", head)
	p.line("")
	p.field("It means", e.Means)
	p.field("It says", e.Says)
	if d := e.Deadline; d != nil {
		p.field("Until", d.words())
	}
	if e.HeldBy != nil {
		p.field("Held by", p.condition(*e.HeldBy))
	}
	for _, c := range e.Conditions {
		p.field("Besides", p.condition(c))
	}
	p.asked(e)
	p.request(e.Request)
	if e.Power != "" {
		p.field("Power", e.Power+", as the manager stored it last")
	}
	p.field("Policy", e.Revision)
	p.field("Marks", strings.Join(e.Marks, ", "))
	if e.Since != nil {
		p.field("Entry", fmt.Sprintf("%d; %s since the last rest", e.Entry, retries(e.Retries)))
	}
	for i := range e.Freezes {
		p.field("Freeze", freeze.Words(&e.Freezes[i]))
	}
	p.field("Breaker", e.Breaker)
	for _, b := range e.Budgets {
		p.field("Budget", b.words())
	}
	p.rules(e)
	p.moves(e.History)
	for _, n := range e.Notes {
		fmt.Fprintf(p.Err, "note: %s\n", terminal.Plain(n)) //nolint:errcheck // The terminal does not take the note.
	}
	return p.err
}

func retries(n int32) string {
	if n == 1 {
		return "1 retry"
	}
	return fmt.Sprintf("%d retries", n)
}

// condition is what a condition says, in a line.
func (p *page) condition(c condition) string {
	return strings.TrimSuffix(fmt.Sprintf("%s is %s since %s (%s): %s", c.Type, c.Status, p.ago(c.Since), c.Reason, c.Message), ": ")
}

// asked writes what people and the manager asked for.
func (p *page) asked(e *explanation) {
	if e.LeftAlone {
		p.field("Left alone", "the annotation "+v1alpha1.OperationAnnotation+" asks the manager to ignore the server")
	}
	if e.Deleted != nil {
		p.field("Deleted", "its deletion was asked for "+p.ago(*e.Deleted)+" ago")
	}
	if e.Asked != "" {
		p.field("Asked for", e.Asked+"; the manager has not taken it in yet")
	}
	if op := e.Operation; op != nil {
		text := fmt.Sprintf("%s is %s, asked for %s ago", op.Name, op.State, p.ago(op.StartedAt.Time))
		if op.By != "" {
			text += " by " + op.By
		}
		for _, words := range []string{op.Reason, op.Message} {
			if words != "" {
				text += "; " + words
			}
		}
		p.field("Operation", text)
	}
}

// request writes the last power change.
func (p *page) request(r *v1alpha1.PowerRequest) {
	if r == nil {
		return
	}
	text := fmt.Sprintf("%s, asked of the BMC %s ago", r.Action, p.ago(r.AskedAt.Time))
	if r.Attempts > 1 {
		text += fmt.Sprintf(", attempt %d", r.Attempts)
	}
	switch {
	case r.ShownAt != nil:
		text += "; the BMC showed it " + p.ago(r.ShownAt.Time) + " ago"
	case r.Refusals > 0:
		text += fmt.Sprintf("; the BMC refused it (%d in a row): %s", r.Refusals, r.Refusal)
	default:
		text += "; the BMC has not shown it yet"
	}
	p.field("Request", text)
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
	if b.Per != "" {
		text += fmt.Sprintf(" for %s=%s", b.Per, b.Value)
	}
	if b.Used == nil {
		return text + "; the manager does not say that it is used up"
	}
	return text + fmt.Sprintf("; used up: %d count", *b.Used)
}

// rules writes the table of the ways out of the state.
func (p *page) rules(e *explanation) {
	rows := make([][]string, len(e.Rules))
	for i, w := range e.Rules {
		rows[i] = []string{w.Rule, w.To, w.now(), w.words()}
	}
	p.table("Ways out of "+terminal.Plain(e.State)+":", []string{"RULE", "TO", "NOW", "WHEN"}, rows)
}

// now says in a word whether the rule matches.
func (w wayOut) now() string {
	switch w.Is {
	case ruleMatches:
		return "yes"
	case ruleClosed:
		return "no"
	case ruleWaits:
		return "waits " + w.Remaining.Round(time.Second).String()
	case ruleBehind:
		return "another first"
	default:
		return "unknown here"
	}
}

// words are what the rule asks for, and what is so.
func (w wayOut) words() string {
	var is []string
	for _, name := range slices.Sorted(maps.Keys(w.Atoms)) {
		value := w.Atoms[name]
		if value == ruleUnknown {
			value = "unknown here"
		}
		is = append(is, name+" is "+value)
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
func (p *page) moves(history []v1alpha1.LifecycleMove) {
	var rows [][]string
	for _, m := range slices.Backward(history) {
		why := m.Rule
		if m.By != "" {
			why += " by " + m.By
		}
		if m.Reason != "" {
			why += ": " + m.Reason
		}
		rows = append(rows, []string{p.ago(m.At.Time) + " ago", shown(string(m.From)), string(m.To), why})
	}
	p.table("Last moves:", []string{"WHEN", "FROM", "TO", "RULE"}, rows)
}
