// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/controllers/fleet/overview"
)

// held says what is held back: by the mode of the manager first, then by FleetControl.
func held(a *overview.Answers) section {
	h := &a.Held
	var words []string
	if h.Breaker != nil && h.Breaker.Tripped {
		words = append(words, "the breaker has tripped")
	}
	if n := len(h.Freezes); n > 0 {
		words = append(words, terminal.Count(n, "freeze"))
	}
	if len(h.Withheld) > 0 {
		words = append(words, "withheld: "+counts(h.Withheld, 4))
	}
	if unreadable(a, overview.Controls) {
		words = append(words, "FleetControl is "+notKnown)
	}
	s := section{least: 3, line: line("Held back", cmp.Or(strings.Join(words, "; "), "nothing")+". "+mode(a))}
	if h.NotAcknowledged {
		s.details = append(s.details, "  the manager has not taken up the last change of FleetControl; it may "+
			"still act by the former one")
	}
	if b := h.Breaker; b != nil && b.Tripped {
		tripped := fmt.Sprintf("  breaker: %d of %d servers entered %s", b.Servers, b.Of, strings.Join(b.States,
			" or "))
		if b.At != nil {
			tripped += " by " + b.At.Format(time.RFC3339)
		}
		s.details = append(s.details, tripped+"; metalaw unfreeze --breaker closes it")
	}
	for i := range h.Freezes {
		f := &h.Freezes[i]
		until := "until it is lifted"
		if f.Until != nil {
			until = "until " + f.Until.Format(time.RFC3339)
		}
		s.details = append(s.details, with(fmt.Sprintf("  freeze %s (%s) on %d servers, by %s, %s", f.Name, f.Level,
			f.Servers,
			cmp.Or(f.By, "unknown"), until), f.Reason))
	}
	for i := range h.Budgets {
		b := &h.Budgets[i]
		words := fmt.Sprintf("  budget %s: %d of %d %s", strings.TrimSpace(b.Name+" "+b.Value), b.Used, b.Max, b.Action)
		if b.Exhausted {
			words += "; no room"
		}
		s.details = append(s.details, words)
	}
	return s
}

// mode says how the manager runs.
func mode(a *overview.Answers) string {
	running := &a.Held.Running
	switch flags := running.Flags(); {
	case unreadable(a, overview.Leases):
		return "The manager's mode is " + notKnown
	case !running.Leading && running.BeatAt == nil:
		return "No manager leads, and none ever did"
	case !running.Leading:
		return "No manager leads; the last one did " + ago(a.At, *running.BeatAt) + " ago"
	case flags == nil:
		return "A manager leads; its build does not tell its mode"
	case flags.ObserveOnly:
		return "Mode: observe-only, so that nothing is done to any machine; maintenance " + cmp.Or(flags.Maintenance,
			"off")
	default:
		return "Mode: acts; maintenance " + cmp.Or(flags.Maintenance, "off")
	}
}

// maintenance says which maintenances and decommissions wait.
func maintenance(a *overview.Answers) section {
	m := &a.Maintenance
	words := fmt.Sprintf("%d wait, %s held", len(m.Waiting), terminal.Count(len(m.Holding), "server"))
	if len(m.Waiting)+len(m.Holding) == 0 {
		words = "none"
	}
	if unreadable(a, overview.Maintenances) {
		words = notKnown
	}
	if n := len(m.Decommissions); n > 0 {
		words += fmt.Sprintf("; %s to go out of service", terminal.Count(n, "server"))
	}
	s := section{least: 2, line: line("Maintenance", words)}
	if len(m.Holding) > 0 {
		most := min(8, len(m.Holding))
		names := strings.Join(m.Holding[:most], ", ")
		if most < len(m.Holding) {
			names += fmt.Sprintf(" and %d more", len(m.Holding)-most)
		}
		s.line += ": " + names
	}
	if len(m.Waiting) > 0 {
		s.line += "; metalaw explain maintenance NAME -n NAMESPACE"
	}
	s.details = append(reasons(a.At, m.Waiting), reasons(a.At, m.Decommissions)...)
	return s
}

// reasons sums up what waits by reason, in the order of the list.
func reasons(now time.Time, list []overview.Wait) []string {
	var order []string
	first, n := map[string]*overview.Wait{}, map[string]int{}
	for i := range list {
		w := &list[i]
		if first[w.Reason] == nil {
			first[w.Reason] = w
			order = append(order, w.Reason)
		}
		n[w.Reason]++
	}
	all := make([]string, 0, len(order))
	for _, reason := range order {
		w := first[reason]
		words := fmt.Sprintf("  %-34s %5d  %-7s %s", reason, n[reason], ago(now, w.Since), w.Title())
		if w.For != "" {
			words += " (claim " + w.For + ")"
		}
		all = append(all, with(words, w.Message))
	}
	return all
}
