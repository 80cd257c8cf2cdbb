// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"strings"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// showPlan writes what becomes of each server.
func (f *fleet) showPlan(t *terminal.Terminal, output terminal.Output) {
	document := struct {
		Policy  string    `json:"policy"`
		Servers []planned `json:"servers"`
		Notes   []string  `json:"notes,omitempty"`
	}{f.policy, f.plan(), f.notes()}
	output.Show(t, document, func() {
		rows := make([][]string, len(document.Servers))
		for i, p := range document.Servers {
			rows[i] = []string{p.Name, p.State, p.Power, p.Becomes, strings.Join(p.Marks, ","), p.Next}
			for k, cell := range rows[i] {
				rows[i][k] = cmp.Or(cell, "-")
			}
			rows[i] = append(rows[i], p.Why)
		}
		t.Table([]string{"NAME", "STATE", "POWER", "BECOMES", "MARKS", "NEXT", "WHY"}, rows)
		for _, note := range document.Notes {
			t.Printf("note: %s\n", note)
		}
		t.Printf("%s, judged by %s; nothing was written\n", terminal.Count(len(rows), "server"), f.policy)
	})
}

// show writes what stands in the way; fine is said where nothing does.
func (v *verdict) show(t *terminal.Terminal, output terminal.Output, fine string) error {
	blocked := v.blocked()
	output.Show(t, v, func() { v.text(t, blocked, fine) })
	if blocked > 0 {
		return terminal.ErrIncomplete
	}
	return nil
}

func (v *verdict) text(t *terminal.Terminal, blocked int, fine string) {
	var rows [][]string
	for _, f := range v.Findings {
		known := ""
		if f.Known {
			known = "known"
		}
		rows = append(rows, []string{f.Kind, f.Name, known, f.Message})
	}
	if len(rows) > 0 {
		t.Table([]string{"KIND", "NAME", "", "FINDING"}, rows)
	}
	for _, note := range v.Notes {
		t.Printf("note: %s\n", terminal.Plain(note))
	}
	if blocked > 0 {
		fine = "no: " + terminal.Count(blocked, "finding") + " to see to first"
	}
	t.Printf("%s\n", fine)
}
