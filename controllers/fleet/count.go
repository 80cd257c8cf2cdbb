// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// Count says how far budgets are used by what is stored of these servers: one entry for each budget, and for each value of
// the label that it is divided by. What the manager has just allowed and not recorded yet is not in it.
func Count(budgets []policyv1alpha1.Budget, servers []v1alpha1.Server, now time.Time) []policyv1alpha1.BudgetUsage {
	machines := make(map[string]machine, len(servers))
	for i := range servers {
		machines[servers[i].Name] = machineOf(&servers[i])
	}
	return usage(budgets, machines, now, func(*policyv1alpha1.Budget, int32) bool { return true })
}

// usage lists how far budgets are used, where that is worth telling: one entry for each value of the label that a budget is
// divided by.
func usage(budgets []policyv1alpha1.Budget, machines map[string]machine, now time.Time,
	tells func(b *policyv1alpha1.Budget, used int32) bool) []policyv1alpha1.BudgetUsage {
	var all []policyv1alpha1.BudgetUsage
	for i := range budgets {
		b := &budgets[i]
		for _, value := range valuesOf(b, machines) {
			if used, _ := use(b, "", value, machines, now); tells(b, used) {
				all = append(all, policyv1alpha1.BudgetUsage{Name: b.Name, Value: value, Used: used})
			}
		}
	}
	return all
}

// exhausting says that a budget has no room.
func exhausting(b *policyv1alpha1.Budget, used int32) bool { return used >= limit(b) }
