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

// checkInitial refuses to begin where a safety rule guards who enters. A server without a state is taken for one that nobody knows
// anything of: what its facts happen not to contradict is not what a rule has seen to, such as an inspection.
func (c *checker) checkInitial() {
	at := c.anatomy.Initial
	for _, r := range slices.Concat(c.anatomy.Enter[at], c.anatomy.Arrive[at]) {
		c.add(diag.Error, CodeInitialGuarded, c.anatomy.InitialAt, "", nil,
			fmt.Sprintf("begin in another state, and let a rule of that lead to %s", at),
			"a server would begin in %s without a rule, where %s guards who enters it: %s", at, r.Rule, r.Doc)
	}
}

// checkMigrations takes each migration for an exit without a guard: of the servers in a state that the lifecycle has dropped
// nothing is known, and one that a safety rule keeps from migrating is halted there until somebody acts.
func (c *checker) checkMigrations() {
	for _, from := range slices.Sorted(maps.Keys(c.anatomy.Migrate)) {
		to := c.stateOf(c.anatomy.Migrate[from])
		left := bdd.True
		ask := func(all []lifecycle.RequirementAnatomy, what, hint string, arrived bool) {
			for i := range all {
				holds := c.outcome(all[i].Must, from).yes
				if arrived {
					holds = c.Restrict(holds, c.marksAfter(nil, to.Marks))
				}
				on := c.And(c.Without(c.Without(left, holds), c.halts(&all[i], from)), c.assumed, c.domain)
				left = c.And(left, holds)
				if x := c.example(on, from, haltedBy(engine.HaltSafety, lifecycle.RuleMigrated)); x != nil {
					c.add(diag.Error, CodeSafetyMove, c.anatomy.MigrateAt[from], lifecycle.RuleMigrated, x,
						hintOf(x, hint),
						"a server left in %s can %s %s where %s forbids it, and is halted: %s", from, what, to.Name, all[i].Rule, all[i].Doc)
				}
			}
		}
		elsewhere := fmt.Sprintf("migrate it to a state from which the facts lead on, such as %s", c.anatomy.Initial)
		ask(c.anatomy.Leave[from], "be led to", fmt.Sprintf("define %s in this lifecycle too, whatever it migrates to", from), false)
		ask(c.anatomy.Enter[to.Name], "enter", elsewhere, true)
		for i := range c.anatomy.Arrive[to.Name] {
			r := &c.anatomy.Arrive[to.Name][i]
			c.add(diag.Warning, CodeMigrateUnguarded, c.anatomy.MigrateAt[from], lifecycle.RuleMigrated, nil,
				fmt.Sprintf("leave it where %s was such a state too; else %s", from, elsewhere),
				"every server left in %s enters %s, whether or not it keeps %s: %s", from, to.Name, r.Rule, r.Doc)
		}
	}
}
