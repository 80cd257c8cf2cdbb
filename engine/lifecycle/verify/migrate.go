// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"maps"
	"slices"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/bdd"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// checkMigrations takes each migration for an exit without a guard: of the servers in a state that the lifecycle has dropped
// nothing is known, and one that a safety rule keeps from migrating is halted there until somebody acts.
func (c *checker) checkMigrations() {
	for _, from := range slices.Sorted(maps.Keys(c.anatomy.Migrate)) {
		to := c.stateOf(c.anatomy.Migrate[from])
		left := bdd.True
		ask := func(all []lifecycle.RequirementAnatomy, what string, arrived bool) {
			for i := range all {
				holds := c.outcome(all[i].Must, from).yes
				if arrived {
					holds = c.Restrict(holds, c.marksAfter(nil, to.Marks))
				}
				on := c.And(c.Without(c.Without(left, holds), c.halts(&all[i], from)), c.assumed, c.domain)
				left = c.And(left, holds)
				if x := c.example(on, from, haltedBy(engine.HaltSafety, lifecycle.RuleMigrated)); x != nil {
					c.add(diag.Error, CodeSafetyMove, c.anatomy.MigrateAt[from], lifecycle.RuleMigrated, x,
						hintOf(x, "migrate it to a state from which the facts lead on, such as "+string(c.anatomy.Initial)),
						"a server left in %s can %s %s where %s forbids it, and is halted: %s", from, what, to.Name, all[i].Rule, all[i].Doc)
				}
			}
		}
		ask(c.anatomy.Leave[from], "be led to", false)
		ask(c.anatomy.Enter[to.Name], "enter", true)
	}
}
