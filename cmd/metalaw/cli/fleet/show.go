// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// page writes a status for people, a section for each thing that can hold a server back.
type page struct{ *terminal.Terminal }

func (p *page) show(s *status) {
	for i, section := range []func(*status){p.freezes, p.budgets, p.breaker, p.withheld} {
		if i > 0 {
			p.Printf("\n")
		}
		section(s)
	}
}

func (p *page) freezes(s *status) {
	if len(s.Freezes) == 0 {
		p.Printf("Freezes:   %s\n", p.Paint(terminal.Good, "none", 0))
		return
	}
	p.Printf("Freezes:\n")
	rows := make([][]string, len(s.Freezes))
	for i := range s.Freezes {
		f := &s.Freezes[i]
		rows[i] = []string{f.Name, string(f.Level), fmt.Sprintf("%d of %d", f.Covers, s.Servers), cmp.Or(f.Selector, "every server"), p.end(f), cmp.Or(f.By, "-"), cmp.Or(f.Reason, "-")}
	}
	p.Table([]string{"  NAME", "LEVEL", "SERVERS", "SELECTOR", "ENDS", "BY", "REASON"}, indented(rows))
}

func (p *page) end(f *freezeStatus) string {
	switch {
	case f.Ended:
		return "ended"
	case f.Until == nil:
		return "never"
	default:
		return "in " + f.Until.Sub(p.Now).Round(time.Second).String()
	}
}

func (p *page) budgets(s *status) {
	if len(s.Budgets) == 0 {
		p.Printf("Budgets:   none\n")
		return
	}
	p.Printf("Budgets:\n")
	rows := make([][]string, len(s.Budgets))
	for i, b := range s.Budgets {
		per := "the fleet"
		if b.Per != "" {
			per = b.Per + "=" + b.Value
		}
		rows[i] = []string{b.Name, string(b.Action), per, used(&b), within(&b), p.room(&b)}
	}
	p.Table([]string{"  NAME", "ACTION", "FOR", "USED", "COUNTED", "ROOM"}, indented(rows))
}

func within(b *budgetStatus) string {
	if b.WindowSeconds == 0 {
		return "at a time"
	}
	return "within " + (time.Duration(b.WindowSeconds) * time.Second).String()
}

func (p *page) room(b *budgetStatus) string {
	switch {
	case b.Used < b.Max:
		return "now"
	case b.FreeAt != nil:
		return "in " + b.FreeAt.Sub(p.Now).Round(time.Second).String()
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
		p.Printf("Breaker:   none\n")
	case b.Tripped:
		p.Printf("Breaker:   %s at %s: %d of %d servers had entered the states that it watches (%s); metalaw unfreeze --breaker closes it\n",
			p.Paint(terminal.Bad, "tripped", 0), b.Trip.At.UTC().Format(time.RFC3339), b.Trip.Servers, b.Trip.Of, strings.Join(b.States, ", "))
	default:
		p.Printf("Breaker:   %s; it trips when more than %d%% of the servers, and %d of them at least, enter %s\n",
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
		p.Printf("Withheld:  from no server\n")
		return
	}
	p.Printf("Withheld:  from %d of %d servers\n", len(s.Withheld), s.Servers)
	rows := make([][]string, len(s.Withheld))
	for i, w := range s.Withheld {
		rows[i] = []string{w.Name, cmp.Or(w.State, "-"), w.Reason, p.Now.Sub(w.Since.Time).Round(time.Second).String(), w.Message}
	}
	p.Table([]string{"  NAME", "STATE", "REASON", "SINCE", "MESSAGE"}, indented(rows))
}

func indented(rows [][]string) [][]string {
	for _, row := range rows {
		row[0] = "  " + row[0]
	}
	return rows
}
