// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
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
}

func newControlCounter(of edition, budgets []policyv1alpha1.Budget, breaker *policyv1alpha1.Breaker) *controlCounter {
	l := &controlCounter{of: of, breaker: newWatch(breaker)}
	for i := range budgets {
		l.budgets = append(l.budgets, newAccount(&budgets[i]))
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
