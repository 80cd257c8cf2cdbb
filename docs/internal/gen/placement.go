// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

func placementPage(string) (string, error) {
	m := newPage("Placement of a claim", "`engine/placement`")
	m.paragraph("The annotation " + code(placement.File) + " of a ServerClaim is a YAML document that says which servers the claim may have, " +
		"which it prefers, and how it stands to other claims. [Claims](../claims.md) shows how to use it. " +
		"Every field is optional; one must be there.")
	m.heading(2, "Fields")
	tableOf(m, []string{"field", "type", "meaning"}, placement.Fields(), func(f placement.Field) []string {
		return []string{code(f.Name), f.Type, f.Doc}
	})
	m.heading(2, "Conditions")
	m.paragraph("A condition is an expression in [CEL](https://cel.dev) over the facts of one server. It yields true or false, or it cannot be " +
		"evaluated. What cannot be evaluated is neither: the server is not taken, and counts under " + code(placement.CodeError) + ". " +
		"That holds for `where`, for an alternative that is asked before one matches, and for a preference. " +
		"A hardware fact that is not known is 0 or empty, which is no error; `server.health` has the word `Unknown`.")
	m.paragraph("YAML takes a value that begins with a quote, `!`, `[` or `{` for something else. So it does with a value that has `: ` or ` #` " +
		"in it. Put such a condition in single quotes, or below `where: |`.")
	m.heading(3, "Facts")
	tableOf(m, []string{"fact", "type", "words", "meaning"}, placement.Facts(), func(f placement.Fact) []string {
		return []string{code(f.Name), f.Type, codes(f.Values), f.Doc}
	})
	m.paragraph("A fact with words is compared with one of them; another word is refused. Taints are no facts: a claim tolerates them, or does not.")
	m.heading(3, "Functions")
	tableOf(m, []string{"use", "meaning"}, placement.Functions(), func(f placement.Function) []string {
		return []string{f.Use, f.Doc}
	})
	m.paragraph("There is nothing else: no patterns, no loops over lists, no clock.")
	m.heading(2, "Limits")
	tableOf(m, []string{"what", "at most"}, placement.Limits(), func(l placement.Limit) []string {
		return []string{l.What, l.Bound}
	})
	m.heading(2, "Codes of servers that a placement turns away")
	m.paragraph("The condition `Bound` of a claim that waits counts servers by code. Each server counts under the first that applies.")
	tableOf(m, []string{"code", "meaning", "what to do"}, placement.Codes(), func(c selection.Code) []string {
		return []string{code(c.Code), c.Meaning, c.Remedy}
	})
	m.paragraph("A placement that is not well-formed is refused when it is written; " +
		"the [findings](diagnostics.md#placement) say where and what to do.")
	return m.text(), nil
}
