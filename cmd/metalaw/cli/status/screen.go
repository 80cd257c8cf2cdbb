// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/controllers/fleet/overview"
)

// height is how many lines a screen has. One line of 24 is left to the prompt.
const height = 23

// section is the answer to one question: a line, and details in the order of their weight.
type section struct {
	line    string
	details []string
	// least is how many lines of detail come before those of later sections.
	least int
}

// screen is the answers as lines, as many as a screen has at most, each as wide as it at most.
func screen(a *overview.Answers, width int) []string {
	sections := []section{notWell(a), servers(a), claims(a), policy(a), shadow(a), happened(a), held(a), maintenance(a)}
	lines := make([]string, 0, height)
	lines = append(lines, title(a))
	for _, u := range a.Unread {
		if len(lines) < 3 {
			lines = append(lines, "Not known: "+u.Resource+": "+u.Why)
		}
	}
	lines = append(lines, fit(sections, height-len(lines))...)
	for i := range lines {
		lines[i] = cut(terminal.Plain(lines[i]), width)
	}
	return lines
}

// fit lays sections out in a number of lines: each one's line, then the least of its details, then more of them.
func fit(sections []section, lines int) []string {
	room := lines - len(sections)
	share := make([]int, len(sections))
	for i := range sections {
		share[i] = max(0, min(sections[i].least, len(sections[i].details), room))
		room -= share[i]
	}
	for i := range sections {
		more := max(0, min(len(sections[i].details)-share[i], room))
		share[i] += more
		room -= more
	}
	var all []string
	for i := range sections {
		s := &sections[i]
		all = append(all, s.line)
		left := len(s.details) - share[i]
		switch {
		case left > 0 && share[i] > 0:
			all = append(all, s.details[:share[i]-1]...)
			all = append(all, fmt.Sprintf("  ... and %d more", left+1))
		case left > 0:
			all[len(all)-1] += fmt.Sprintf(" (%d lines more with -o yaml)", left)
		default:
			all = append(all, s.details...)
		}
	}
	return all
}

// cut shortens a line to a width.
func cut(line string, width int) string {
	runes := []rune(line)
	if len(runes) <= width {
		return line
	}
	return string(runes[:max(0, width-3)]) + "..."
}

// line begins with the name of a section.
func line(name, text string) string { return fmt.Sprintf("%-12s %s", name, text) }

func title(a *overview.Answers) string {
	at := a.At.Format(time.RFC3339)
	switch a.Verdict {
	case overview.NeedsPerson:
		return "Needs a person: " + strings.Join(a.Person, ", ") + "  (" + at + ")"
	case overview.Unknown:
		return "Cannot be told: not everything could be read, and the rest is well  (" + at + ")"
	case overview.Well:
		return "Well: nothing needs a person  (" + at + ")"
	}
	return at
}

// unreadable says that what an answer is made of could not be read.
func unreadable(a *overview.Answers, resource string) bool {
	for _, u := range a.Unread {
		if u.Resource == resource {
			return true
		}
	}
	return false
}

const notKnown = "not known"

func notWell(a *overview.Answers) section {
	s := section{least: 5}
	groups := overview.Groups(a.NotWell)
	objects := "nothing"
	if n := len(a.NotWell); n > 0 {
		objects = terminal.Count(n, "object") + "; the whole cause: metalaw explain server NAME, kubectl describe bmc NAME"
	}
	if unreadable(a, overview.BMCs) {
		objects += "; BMCs are " + notKnown
	}
	s.line = line("Not well", objects)
	for i := range groups {
		g := &groups[i]
		name := g.Kind + " " + g.Reason
		if g.First.State == "Error" {
			name += " (Error)"
		}
		words := fmt.Sprintf("  %-34s %5d  %-7s %s", name, g.Objects, ago(a.At, g.First.Since), g.First.Title())
		if g.Behind > 0 {
			words += fmt.Sprintf(" (%d behind)", g.Behind)
		}
		s.details = append(s.details, with(words, g.First.Message))
	}
	return s
}

func servers(a *overview.Answers) section {
	w := &a.Where
	states := make([]string, 0, len(w.States))
	for _, c := range w.States {
		word := fmt.Sprintf("%s %d", c.Name, c.Count)
		if c.Name == "Error" {
			word += " (" + counts(w.Errors, 3) + ")"
		}
		states = append(states, word)
	}
	s := section{least: 2, line: line("Servers", fmt.Sprintf("%d: %s", w.Servers, cmp.Or(strings.Join(states, ", "),
		"none")))}
	if w.Servers == 0 {
		return s
	}
	s.details = append(s.details, fmt.Sprintf("  power: %s; claimed %d, cordoned %d", counts(w.Power, 6), w.Claimed,
		w.Cordoned))
	if len(w.Racks) == 1 && w.Racks[0].Name == "" {
		return s
	}
	for i := range w.Racks {
		r := &w.Racks[i]
		words := fmt.Sprintf("  rack %-10s %5d: %s", cmp.Or(r.Name, "(none)"), r.Servers, counts(r.States, 8))
		switch r.NeedPerson {
		case 0:
		case 1:
			words += "; 1 needs a person"
		default:
			words += fmt.Sprintf("; %d need a person", r.NeedPerson)
		}
		s.details = append(s.details, words)
	}
	return s
}

func claims(a *overview.Answers) section {
	c := &a.Claims
	s := section{least: 3, line: line("Claims", fmt.Sprintf("%d: %d ready, %d wait; %d have no server", c.Claims,
		c.Ready, len(c.Waiting), c.Unbound))}
	if unreadable(a, overview.Claims) {
		s.line = line("Claims", notKnown)
	}
	if len(c.Waiting) > 0 {
		s.line += "; metalaw explain claim NAME -n NAMESPACE"
	}
	for i := range c.Reasons {
		r := &c.Reasons[i]
		words := fmt.Sprintf("  %-34s %5d  %-7s %s/%s", r.Reason, r.Claims, ago(a.At, r.First.Since),
			r.First.Namespace, r.First.Name)
		s.details = append(s.details, with(words, r.First.Message))
	}
	return s
}

func policy(a *overview.Answers) section {
	p := &a.Policy
	switch {
	case unreadable(a, overview.Revisions):
		return section{line: line("Policy", notKnown)}
	case p.InForce == "":
		return section{line: line("Policy", "no revision is in force"), details: revisions(a, 0), least: 1}
	}
	governs := p.Revisions[0]
	words := fmt.Sprintf("%s governs %d of %d servers", governs.Name, governs.Servers, a.Where.Servers)
	if governs.Since != nil {
		words += ", " + governs.Stage + " for " + ago(a.At, *governs.Since)
	}
	return section{line: line("Policy", words), details: revisions(a, 1), least: 2}
}

func revisions(a *overview.Answers, from int) []string {
	var all []string
	for i := range a.Policy.Revisions[from:] {
		r := &a.Policy.Revisions[from+i]
		words := fmt.Sprintf("  %s (%s) governs %d servers", r.Name, cmp.Or(r.Stage, "no stage"), r.Servers)
		if c := r.Canary; c != nil {
			words += "; " + scope(cmp.Or(c.Selector, "every server"), c.Percent) + "; " + c.Cost()
			if c.Paused {
				words += "; paused: " + c.Reason
			}
		} else {
			words = with(words, r.Message)
		}
		all = append(all, words)
	}
	return all
}

func scope(selector string, percent int32) string {
	if percent == 0 {
		return selector
	}
	return fmt.Sprintf("%d %% of %s", percent, selector)
}

func shadow(a *overview.Answers) section {
	s := section{least: 1, line: line("Shadow", "none")}
	if unreadable(a, overview.Revisions) {
		s.line = line("Shadow", notKnown)
	}
	for i := range a.Policy.Revisions {
		r := &a.Policy.Revisions[i]
		if r.Shadow == nil {
			continue
		}
		words := fmt.Sprintf("%s: %d differences in %d decisions", r.Name, r.Shadow.DifferencesTotal,
			r.Shadow.Evaluated)
		if len(s.details) == 0 && strings.HasSuffix(s.line, " none") {
			s.line = line("Shadow", words)
		} else {
			s.details = append(s.details, "  "+words)
		}
		for _, d := range r.Shadow.Differences {
			s.details = append(s.details, fmt.Sprintf("  in %s %d times %s instead of %s, last on %s", cmp.Or(d.State,
				"no state"), d.Count,
				cmp.Or(d.ShadowRule, "no move"), cmp.Or(d.Rule, "no move"), cmp.Or(d.LastServer, "?")))
		}
	}
	return s
}

func happened(a *overview.Answers) section {
	h := &a.Happened
	words := "no move in the last hour"
	if h.Moves > 0 {
		words = fmt.Sprintf("%s in the last hour: %s", terminal.Count(h.Moves, "move"), counts(h.Rules, 4))
	}
	s := section{least: 2, line: line("Happened", words)}
	for i := range h.Last {
		s.details = append(s.details, event(&h.Last[i], a.At))
	}
	return s
}

func event(e *overview.Event, now time.Time) string {
	words := fmt.Sprintf("  %-5s %s: ", ago(now, e.At), e.Server)
	if e.What == overview.Move {
		words += fmt.Sprintf("%s to %s by %s", cmp.Or(e.From, "new"), e.To, cmp.Or(e.Rule, "no rule"))
		if e.Revision != "" {
			words += " of " + e.Revision
		}
	} else {
		words += strings.TrimSpace(e.What + " " + e.State)
	}
	if e.By != "" {
		words += ", asked for by " + e.By
	}
	return with(words, e.Reason)
}

// with adds words of others.
func with(words, message string) string {
	if message == "" {
		return words
	}
	return words + ": " + message
}

// counts are the first of some counts in words.
func counts(all []overview.Count, most int) string {
	words := make([]string, 0, most+1)
	for i, c := range all {
		if i == most {
			words = append(words, fmt.Sprintf("%d more", len(all)-most))
			break
		}
		words = append(words, fmt.Sprintf("%s %d", cmp.Or(c.Name, "none"), c.Count))
	}
	return strings.Join(words, ", ")
}

// ago is how long something has lasted.
func ago(now, since time.Time) string { return duration.HumanDuration(max(0, now.Sub(since))) }
