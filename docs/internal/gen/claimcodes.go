// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

func claimCodesPage(string) (string, error) {
	m := newPage("Codes of servers that a claim cannot have", "`engine/selection`, `engine/placement` and `engine/claims/solve`")
	m.paragraph("While a claim waits, the message of its condition `Bound` counts servers by code, such as " +
		"`3 of 40 servers match: taint 2, not-off 1`; `metalaw explain claim NAME` shows them server by server. " +
		"[Why does my claim wait?](../claims.md#why-does-my-claim-wait) goes through an example.")
	m.paragraph("A server counts under the first code of the hard contract that applies, in the order of this page. If none applies, it " +
		"counts under the first code of the claim's placement. If none of these applies either, it counts under each code of the bundle's policy.")
	m.heading(2, "The hard contract")
	m.paragraph("No policy can loosen it.")
	codeSections(m, selection.Codes())
	m.heading(2, "The claim's placement")
	m.paragraph("What the [placement](placement.md) of the claim says.")
	codeSections(m, placement.Codes())
	m.heading(2, "The policy")
	m.paragraph("A bundle adds codes of its own by the `reject` rules of its `selection.rego`; the message with the code is the bundle's. " +
		"The default bundle has one: `unhealthy`, for a server whose BMC reports health Critical. A policy that turns a server away " +
		"without a reason counts it under " + code(selection.CodeNotAllowed) + ".")
	return m.text(), nil
}

// codeSections gives each code a heading, so that it can be linked.
func codeSections(m *markdown, all []selection.Code) {
	for _, c := range all {
		m.heading(3, "%s", c.Code)
		m.paragraph(c.Meaning)
		m.paragraph("**Do:** " + c.Remedy)
		m.paragraph("It passes: " + solve.WaysOf(c.Code) + ".")
	}
}
