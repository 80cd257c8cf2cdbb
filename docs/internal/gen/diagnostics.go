// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/metalaw/metalaw/engine/diag"
)

func diagnosticsPage(string) (string, error) {
	m := newPage("Findings about bundles and placements", "`engine/diag/codes.go`")
	m.paragraph("What is wrong with a bundle, or with the [placement](placement.md) of a claim, is told all at once, " +
		"in the form `file:line:column: severity: rule: message (hint) [code]`. " +
		"Lines and columns count from 1; a finding without them is about the whole file. An error keeps it from being accepted, " +
		"a warning does not. Codes never change their meaning.")
	for _, g := range diag.Groups() {
		m.heading(2, "%s", g.Title)
		m.paragraph(g.About)
		var rows [][]string
		for _, c := range g.Codes {
			what := c.What
			if c.Severity != diag.Error {
				what += " (" + string(c.Severity) + ")"
			}
			rows = append(rows, []string{code(c.Code), what, c.Remedy})
		}
		m.table([]string{"code", "what is wrong", "what to do"}, rows)
	}
	return m.text(), nil
}
