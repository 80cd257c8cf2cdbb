// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/internal/freeze"
)

// defaultWindow is how many seconds an action counts where the budget does not say, and how far back a breaker looks.
const defaultWindow = 600

// Window is for how long an action counts against a budget, and how far back a breaker looks; what is left out has the default.
func Window(seconds *int32) time.Duration {
	return time.Duration(ptr.Deref(seconds, defaultWindow)) * time.Second
}

// account is how far one budget is used, for each value of the label that it is divided by; for the empty value alone
// where it is not divided.
type account struct {
	budget   *policyv1alpha1.Budget
	selector labels.Selector
	window   time.Duration
	shares   map[string]*share
	clock    *counted.Clock
}

// share is how far a budget is used for one value of its label.
type share struct {
	// covers is how many machines with the value the budget is about.
	covers int
	used   counter
	// stays says that the share is told of also where there is no machine.
	stays bool
}

func newAccount(b *policyv1alpha1.Budget, clock *counted.Clock) *account {
	a := &account{budget: b.DeepCopy(), selector: freeze.Selector(b.Selector), window: Window(b.WindowSeconds),
		shares: map[string]*share{}, clock: clock}
	if b.Per == "" {
		a.shares[""] = &share{stays: true}
	}
	return a
}

// covers says that the budget counts and bounds machines with these labels.
func (a *account) covers(of map[string]string) bool { return a.selector.Matches(labels.Set(of)) }

func (a *account) value(of map[string]string) string {
	if a.budget.Per == "" {
		return ""
	}
	return of[a.budget.Per]
}

func (a *account) enter(name string, m *machine) {
	if !a.covers(m.labels) {
		return
	}
	value := a.value(m.labels)
	s := a.shares[value]
	if s == nil {
		s = &share{}
		a.shares[value] = s
	}
	s.covers++
	if until, counts := m.undergoes(a.budget.Action, a.window, a.clock); counts {
		s.used.set(name, until)
	}
}

func (a *account) remove(name string, m *machine) {
	value := a.value(m.labels)
	s := a.shares[value]
	if s == nil || !a.covers(m.labels) {
		return
	}
	s.used.drop(name)
	s.covers--
	if s.covers == 0 && !s.stays {
		delete(a.shares, value)
	}
}

// use is how many machines count against the budget for a value, besides the one that asks, and in which time the first of
// them ceases to; 0 where that cannot be told.
func (a *account) use(value, asks string, now time.Time) (used int32, free time.Duration) {
	s := a.shares[value]
	if s == nil {
		return 0, 0
	}
	return s.used.count(asks, now)
}

// room is when enough of the machines that count for a value have ceased to, so that there is room for one more; zero where there
// is room, and where that cannot be told.
func (a *account) room(value string) time.Time {
	s := a.shares[value]
	limit := a.limit(value)
	if s == nil || limit == 0 {
		return time.Time{}
	}
	over := len(s.used.list) - int(limit)
	if over < 0 {
		return time.Time{}
	}
	ends := slices.SortedFunc(slices.Values(s.used.list), func(x, y limited) int {
		if x.until.IsZero() != y.until.IsZero() {
			return -x.until.Compare(y.until) // the zero time is no end, so it is last
		}
		return x.until.Compare(y.until)
	})
	return ends[over].until
}

// limit is the number of machines that the budget allows for a value: the larger of its number and of its share of the
// machines that it covers. One without either allows none.
func (a *account) limit(value string) int32 {
	limit, percent := ptr.Deref(a.budget.Max, 0), ptr.Deref(a.budget.MaxPercent, 0)
	if s := a.shares[value]; s != nil {
		limit = max(limit, int32(s.covers*int(percent)/100))
	}
	return limit
}

// values lists the values of the label that the budget is divided by, among the machines that it covers, sorted.
func (a *account) values() []string { return slices.Sorted(maps.Keys(a.shares)) }
