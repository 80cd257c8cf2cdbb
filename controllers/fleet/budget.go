// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/metalaw/metalaw/api/freeze"
	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// defaultWindow is how long an action counts where the budget does not say, and how far back a breaker looks.
const defaultWindow = 10 * time.Minute

func window(seconds *int32) time.Duration {
	if seconds == nil {
		return defaultWindow
	}
	return time.Duration(*seconds) * time.Second
}

// concerns says that a budget bounds an action on a machine with these labels.
func concerns(b *policyv1alpha1.Budget, action policyv1alpha1.FleetAction, of map[string]string) bool {
	return b.Action == action && freeze.Selector(b.Selector).Matches(labels.Set(of))
}

// use is how many machines count against a budget, besides the one that asks, and when the first of them ceases to; 0
// where that cannot be told.
func use(b *policyv1alpha1.Budget, asks string, value string, machines map[string]machine, now time.Time) (used int32, free time.Duration) {
	selector := freeze.Selector(b.Selector)
	for name, m := range machines {
		if name == asks || !selector.Matches(labels.Set(m.labels)) || (b.Per != "" && m.labels[b.Per] != value) {
			continue
		}
		counts, left := m.undergoes(b.Action, window(b.WindowSeconds), now)
		if !counts {
			continue
		}
		used++
		if left > 0 && (free == 0 || left < free) {
			free = left
		}
	}
	return used, free
}

// limit is the number of machines that a budget allows. One without a number allows none.
func limit(b *policyv1alpha1.Budget) int32 {
	if b.Max == nil {
		return 0
	}
	return *b.Max
}

// valuesOf lists the values of the label that a budget is divided by, among the machines that it covers, sorted; one empty
// value where it is not divided.
func valuesOf(b *policyv1alpha1.Budget, machines map[string]machine) []string {
	if b.Per == "" {
		return []string{""}
	}
	selector := freeze.Selector(b.Selector)
	values := map[string]bool{}
	for _, m := range machines {
		if selector.Matches(labels.Set(m.labels)) {
			values[m.labels[b.Per]] = true
		}
	}
	return slices.Sorted(maps.Keys(values))
}
