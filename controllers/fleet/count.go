// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/counted"
)

// controlCounter counts for one generation of a FleetControl: each of its budgets, and what its breaker watches. Its selectors
// are compiled once, and each machine is entered when it changes, so that a question does not look at every machine.
type controlCounter struct {
	of      edition
	budgets []*account
	breaker *watch
}

// edition names a generation of a FleetControl.
type edition struct {
	uid        types.UID
	generation int64
	// counted says that counted time was known.
	counted bool
}

// editionOf is that of a FleetControl; zero where there is none.
func editionOf(c *policyv1alpha1.FleetControl) edition {
	if c == nil {
		return edition{}
	}
	return edition{uid: c.UID, generation: c.Generation}
}

func newControlCounter(of edition, budgets []policyv1alpha1.Budget, breaker *policyv1alpha1.Breaker,
	clock *counted.Clock) *controlCounter {
	l := &controlCounter{of: of, breaker: newWatch(breaker, clock)}
	for i := range budgets {
		l.budgets = append(l.budgets, newAccount(&budgets[i], clock))
	}
	return l
}

// enter counts a machine that does not count yet.
func (l *controlCounter) enter(name string, m *machine) {
	for _, a := range l.budgets {
		a.enter(name, m)
	}
	l.breaker.enter(name, m)
}

// remove takes a machine out that counts as m.
func (l *controlCounter) remove(name string, m *machine) {
	for _, a := range l.budgets {
		a.remove(name, m)
	}
	l.breaker.remove(name)
}

// Count says how far budgets are used by what is stored of these servers and of their machines: one entry for each budget,
// and for each value of the label that it is divided by. A manager counts besides what it has allowed and not recorded yet,
// and what it saw begun of a server whose status was lost since.
func Count(budgets []policyv1alpha1.Budget, servers []v1alpha1.Server, inventories []policyv1alpha1.ServerInventory,
	now time.Time) []Use {
	c := &counters{controlCounter: newControlCounter(edition{}, budgets, nil, nil)}
	for i := range inventories {
		c.hear(inventories[i].Name, erasingUntil(&inventories[i]))
	}
	for i := range servers {
		c.see(&servers[i])
	}
	all := c.controlCounter.usage(now, func(*account, string, int32) bool { return true })
	uses := make([]Use, 0, len(all))
	for _, a := range c.controlCounter.budgets {
		for _, value := range a.values() {
			uses = append(uses, Use{all[len(uses)], a.limit(value), a.room(value)})
		}
	}
	return uses
}

// Use is how far a budget is used.
type Use struct {
	policyv1alpha1.BudgetUsage
	// Max is the number of machines that the budget allows at present.
	Max int32
	// FreeAt is when there is room again; zero where there is some, and where nobody can tell.
	FreeAt time.Time
}

// usage lists how far budgets are used, where that is worth telling: one entry for each value of the label that a budget is
// divided by.
func (l *controlCounter) usage(now time.Time, tells func(a *account, value string, used int32) bool) []policyv1alpha1.BudgetUsage {
	var all []policyv1alpha1.BudgetUsage
	for _, a := range l.budgets {
		for _, value := range a.values() {
			if used, _ := a.use(value, "", now); tells(a, value, used) {
				all = append(all, policyv1alpha1.BudgetUsage{Name: a.budget.Name, Value: value, Used: used})
			}
		}
	}
	return all
}

// maxUsage is how many entries the status of a FleetControl holds.
const maxUsage = 200

// exhausted lists the budgets that have no room: those that are the furthest beyond their number first, as many as a
// status holds, and how many more there are.
func (l *controlCounter) exhausted(now time.Time) (usage []policyv1alpha1.BudgetUsage, omitted int32) {
	limits := map[[2]string]int32{}
	all := l.usage(now, func(a *account, value string, used int32) bool {
		limit := a.limit(value)
		limits[[2]string{a.budget.Name, value}] = limit
		return used >= limit
	})
	over := func(u policyv1alpha1.BudgetUsage) int32 { return u.Used - limits[[2]string{u.Name, u.Value}] }
	slices.SortStableFunc(all, func(a, b policyv1alpha1.BudgetUsage) int { return cmp.Compare(over(b), over(a)) })
	if len(all) <= maxUsage {
		return all, 0
	}
	return all[:maxUsage], int32(len(all) - maxUsage)
}
