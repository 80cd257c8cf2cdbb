// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/bdd"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// checkInitial refuses to begin where a safety rule guards the entry. The operator knows nothing
// of a server without a state: facts that do not contradict a safety rule prove less than a rule such as an inspection.
func (c *checker) checkInitial() {
	at := c.ast.Initial
	for _, r := range slices.Concat(c.safety.Enter[at], c.safety.Arrive[at]) {
		c.add(diag.Error, CodeInitialGuarded, c.ast.InitialAt, "", nil,
			fmt.Sprintf("begin in another state, and let a rule of that lead to %s", at),
			"a server would begin in %s without a rule, where %s guards who enters it: %s", at, r.Rule, r.Doc)
	}
}

// checkMigrations takes each migration for an exit without a guard: of the servers in a state that the lifecycle has dropped
// nothing is known, and one that a safety rule keeps from migrating is halted there until a person acts.
func (c *checker) checkMigrations() {
	for _, from := range slices.Sorted(maps.Keys(c.ast.Migrate)) {
		to := c.stateOf(c.ast.Migrate[from])
		left := bdd.True
		ask := func(all []*lifecycle.Requirement, moved bdd.Fixed, what, hint string) {
			var breaches []breach
			breaches, left = c.broken(left, all, from, moved, breach{})
			for _, b := range breaches {
				on := c.And(b.on, c.assumed, c.domain)
				if x := c.example(on, from, haltedBy(engine.HaltSafety, lifecycle.RuleMigrated)); x != nil {
					c.add(diag.Error, CodeSafetyMove, c.ast.MigrateAt[from], lifecycle.RuleMigrated, x,
						hint,
						"a server left in %s can %s %s where %s forbids it, and is halted: %s", from, what, to.Name, b.rule.Rule, b.rule.Doc)
				}
			}
		}
		elsewhere := fmt.Sprintf("migrate it to a state from which the facts lead on, such as %s", c.ast.Initial)
		ask(c.safety.Leave[from], nil, "be led to", fmt.Sprintf("define %s in this lifecycle too, whatever it migrates to", from))
		ask(c.safety.Enter[to.Name], c.marksAfter(nil, to.Marks), "enter", elsewhere)
		for _, r := range c.safety.Arrive[to.Name] {
			c.add(diag.Warning, CodeMigrateUnguarded, c.ast.MigrateAt[from], lifecycle.RuleMigrated, nil,
				fmt.Sprintf("leave it where %s was such a state too; else %s", from, elsewhere),
				"every server left in %s enters %s, whether or not it keeps %s: %s", from, to.Name, r.Rule, r.Doc)
		}
	}
}
