// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/metalaw/metalaw/controllers/server/gates"

// gateKinds say to which decisions a gate applies.
var gateKinds = map[gates.When]string{
	gates.OnDecision: "a decision",
	gates.OnHalt:     "a halt that another revision may end",
	gates.OnAction:   "an action",
}

// gateTable lists what holds a server back beside its lifecycle.
func gateTable(m *markdown) {
	m.heading(2, "Gates")
	m.paragraph("The rules above say what a server may do. Gates say when it does it. They are the same under every bundle. " +
		"They are asked in this order, and the first that holds a decision ends it. " +
		"While a gate holds a move, it is the reason of the condition `Reconciling`.")
	tableOf(m, []string{"gate", "holds", "meaning"}, gates.List(), func(g gates.Gate) []string {
		return []string{code(g.Name), gateKinds[g.When], g.Means}
	})
}
