// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"strings"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// showPlan writes what becomes of each server.
func (f *fleet) showPlan(t *terminal.Terminal, output terminal.Output) error {
	all, notes := f.plan(), f.notes()
	if output.Structured() {
		return output.Write(t.Out, struct {
			Policy  string    `json:"policy"`
			Servers []planned `json:"servers"`
			Notes   []string  `json:"notes,omitempty"`
		}{f.policy, all, notes})
	}
	rows := make([][]string, len(all))
	for i, p := range all {
		rows[i] = []string{p.Name, or(p.State), or(p.Power), or(p.Becomes), or(strings.Join(p.Marks, ",")), or(p.Next), p.Why}
	}
	if err := terminal.Table(t.Out, []string{"NAME", "STATE", "POWER", "BECOMES", "MARKS", "NEXT", "WHY"}, rows); err != nil {
		return err
	}
	for _, note := range notes {
		if _, err := fmt.Fprintln(t.Out, "note: "+note); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(t.Out, "%s, judged by %s; nothing was written\n", terminal.Count(len(all), "server"), f.policy)
	return err
}

// show writes what stands in the way; fine is said where nothing does.
func (v *verdict) show(t *terminal.Terminal, output terminal.Output, fine string) error {
	blocked := v.blocked()
	if output.Structured() {
		if err := output.Write(t.Out, v); err != nil {
			return err
		}
	} else if err := v.text(t, blocked, fine); err != nil {
		return err
	}
	if blocked > 0 {
		return terminal.ErrIncomplete
	}
	return nil
}

func (v *verdict) text(t *terminal.Terminal, blocked int, fine string) error {
	if len(v.Findings) > 0 {
		rows := make([][]string, len(v.Findings))
		for i, f := range v.Findings {
			known := ""
			if f.Known {
				known = "known"
			}
			rows[i] = []string{f.Kind, f.Name, known, f.Message}
		}
		if err := terminal.Table(t.Out, []string{"KIND", "NAME", "", "FINDING"}, rows); err != nil {
			return err
		}
	}
	for _, note := range v.Notes {
		if _, err := fmt.Fprintln(t.Out, "note: "+terminal.Plain(note)); err != nil {
			return err
		}
	}
	last := fine
	if blocked > 0 {
		last = "no: " + terminal.Count(blocked, "finding") + " to see to first"
	}
	_, err := fmt.Fprintln(t.Out, last)
	return err
}

func or(word string) string {
	if word == "" {
		return "-"
	}
	return word
}
