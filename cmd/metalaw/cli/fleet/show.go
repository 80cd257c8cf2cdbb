// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// page writes a status for people, a section for each thing that can hold a server back.
type page struct {
	*terminal.Terminal
	now   time.Time
	wrong error
}

func (p *page) line(format string, args ...any) {
	_, err := fmt.Fprintf(p.Out, format+"\n", args...)
	p.wrong = errors.Join(p.wrong, err)
}

func (p *page) table(head []string, rows [][]string) {
	p.wrong = errors.Join(p.wrong, terminal.Table(p.Out, head, rows))
}

// show writes all of it.
func (p *page) show(s *status) error {
	p.freezes(s)
	p.line("")
	p.budgets(s)
	p.line("")
	p.breaker(s)
	p.line("")
	p.withheld(s)
	return p.wrong
}

func (p *page) freezes(s *status) {
	if len(s.Freezes) == 0 {
		p.line("Freezes:   %s", p.Paint(terminal.Good, "none", 0))
		return
	}
	p.line("Freezes:")
	rows := make([][]string, len(s.Freezes))
	for i := range s.Freezes {
		f := &s.Freezes[i]
		rows[i] = []string{f.Name, string(f.Level), fmt.Sprintf("%d of %d", f.Covers, s.Servers), orAll(f.Selector), p.end(f), or(f.By), or(f.Reason)}
	}
	p.table([]string{"  NAME", "LEVEL", "SERVERS", "SELECTOR", "ENDS", "BY", "REASON"}, indented(rows))
}

// end says when a freeze ends.
func (p *page) end(f *freezeStatus) string {
	switch {
	case f.Ended:
		return "ended"
	case f.Until == nil:
		return "never"
	default:
		return "in " + f.Until.Sub(p.now).Round(time.Second).String()
	}
}

func (p *page) budgets(s *status) {
	if len(s.Budgets) == 0 {
		p.line("Budgets:   none")
		return
	}
	p.line("Budgets:")
	rows := make([][]string, len(s.Budgets))
	for i, b := range s.Budgets {
		per := "the fleet"
		if b.Per != "" {
			per = b.Per + "=" + b.Value
		}
		rows[i] = []string{b.Name, string(b.Action), per, used(&b), within(&b), p.room(&b)}
	}
	p.table([]string{"  NAME", "ACTION", "FOR", "USED", "COUNTED", "ROOM"}, indented(rows))
}

// within says for how long an action counts.
func within(b *budgetStatus) string {
	if b.WindowSeconds == 0 {
		return "at a time"
	}
	return "within " + (time.Duration(b.WindowSeconds) * time.Second).String()
}

// room says when one more is let through.
func (p *page) room(b *budgetStatus) string {
	switch {
	case b.Used < b.Max:
		return "now"
	case b.FreeAt != nil:
		return "in " + b.FreeAt.Sub(p.now).Round(time.Second).String()
	case b.Max == 0:
		return "never"
	default:
		return "when one ends"
	}
}

// used says how far a budget is used. One that allows nothing has nothing to be a part of.
func used(b *budgetStatus) string {
	if b.Max == 0 {
		return fmt.Sprintf("%d; none is allowed", b.Used)
	}
	return fmt.Sprintf("%d of %d", b.Used, b.Max)
}

func (p *page) breaker(s *status) {
	switch b := s.Breaker; {
	case b == nil:
		p.line("Breaker:   none")
	case b.Tripped:
		p.line("Breaker:   %s at %s: %d of %d servers had entered the states that it watches (%s); metalaw unfreeze --breaker closes it",
			p.Paint(terminal.Bad, "tripped", 0), b.Trip.At.UTC().Format(time.RFC3339), b.Trip.Servers, b.Trip.Of, strings.Join(b.States, ", "))
	default:
		p.line("Breaker:   %s; it trips when more than %d%% of the servers, and %d of them at least, enter %s",
			p.Paint(terminal.Good, "closed", 0), b.MaxPercent, b.MinServers, either(b.States))
	}
}

// either names states of which each counts.
func either(states []string) string {
	last := len(states) - 1
	if last < 1 {
		return strings.Join(states, "")
	}
	return strings.Join(states[:last], ", ") + " or " + states[last]
}

func (p *page) withheld(s *status) {
	if len(s.Withheld) == 0 {
		p.line("Withheld:  from no server")
		return
	}
	p.line("Withheld:  from %d of %d servers", len(s.Withheld), s.Servers)
	rows := make([][]string, len(s.Withheld))
	for i, w := range s.Withheld {
		rows[i] = []string{w.Name, or(w.State), w.Reason, p.now.Sub(w.Since.Time).Round(time.Second).String(), w.Message}
	}
	p.table([]string{"  NAME", "STATE", "REASON", "SINCE", "MESSAGE"}, indented(rows))
}

func indented(rows [][]string) [][]string {
	for _, row := range rows {
		row[0] = "  " + row[0]
	}
	return rows
}

func or(word string) string {
	if word == "" {
		return "-"
	}
	return word
}

func orAll(selector string) string {
	if selector == "" {
		return "every server"
	}
	return selector
}
