// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/metalaw/metalaw/engine/placement"
)

func placementPage(string) (string, error) {
	m := newPage("Placement of a claim", "`engine/placement`")
	m.paragraph("The annotation " + code(placement.File) + " of a ServerClaim is a YAML document that says which servers the claim may have, " +
		"which it prefers, and how it stands to other claims. [Claims](../claims.md) shows how to use it. " +
		"Every field is optional; one must be there.")
	m.line("## Fields")
	m.line("")
	var rows [][]string
	for _, f := range placement.Fields() {
		rows = append(rows, []string{code(f.Name), f.Type, f.Doc})
	}
	m.table([]string{"field", "type", "meaning"}, rows)
	m.line("## Conditions")
	m.line("")
	m.paragraph("A condition is an expression in [CEL](https://cel.dev) over the facts of one server. It yields true or false, or it cannot be " +
		"evaluated. What cannot be evaluated is neither: the server is not taken, and counts under " + code(placement.CodeError) + ". " +
		"That holds for `where`, for an alternative that is asked before one matches, and for a preference. " +
		"A hardware fact that is not known is 0 or empty, which is no error; `server.health` has the word `Unknown`.")
	m.paragraph("YAML takes a value that begins with a quote, `!`, `[` or `{` for something else, and so it does with `: ` and ` #` inside one: " +
		"put such a condition in single quotes, or below `where: |`.")
	m.line("### Facts")
	m.line("")
	rows = nil
	for _, f := range placement.Facts() {
		rows = append(rows, []string{code(f.Name), f.Type, codes(f.Values), f.Doc})
	}
	m.table([]string{"fact", "type", "words", "meaning"}, rows)
	m.paragraph("A fact with words is compared with one of them; another word is refused. Taints are no facts: a claim tolerates them, or does not.")
	m.line("### Functions")
	m.line("")
	rows = nil
	for _, f := range placement.Functions() {
		rows = append(rows, []string{f.Use, f.Doc})
	}
	m.table([]string{"use", "meaning"}, rows)
	m.paragraph("There is nothing else: no patterns, no loops over lists, no clock.")
	m.line("## Limits")
	m.line("")
	rows = nil
	for _, l := range placement.Limits() {
		rows = append(rows, []string{l.What, l.Bound})
	}
	m.table([]string{"what", "at most"}, rows)
	m.line("## Codes of servers that a placement turns away")
	m.line("")
	m.paragraph("The condition `Bound` of a claim that waits counts servers by code. Each server counts under the first that applies.")
	rows = nil
	for _, c := range placement.Codes() {
		rows = append(rows, []string{code(c.Code), c.Meaning, c.Remedy})
	}
	m.table([]string{"code", "meaning", "what to do"}, rows)
	m.paragraph("A placement that is not well-formed is refused when it is written; " +
		"the [findings](diagnostics.md#placement) say where and what to do.")
	return m.text(), nil
}
