// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/internal/freeze"
	"github.com/metalaw/metalaw/internal/running"
)

// Held is what is held back, and by which means.
type Held struct {
	// Running is which managers run, which leads, and with which flags.
	Running running.State `json:"running"`
	// NotAcknowledged says that the manager may still go by what FleetControl said before.
	NotAcknowledged bool     `json:"notAcknowledged,omitempty"`
	Freezes         []Freeze `json:"freezes,omitempty"`
	Breaker         *Breaker `json:"breaker,omitempty"`
	Budgets         []Budget `json:"budgets,omitempty"`
	// Withheld counts by reason the servers from which something is withheld.
	Withheld []Count `json:"withheld,omitempty"`
}

// Freeze is a freeze that holds.
type Freeze struct {
	Name     string     `json:"name"`
	Level    string     `json:"level"`
	Selector string     `json:"selector,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	By       string     `json:"by,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
	// Servers is how many servers it covers.
	Servers int `json:"servers"`
}

// Breaker is whether the breaker has tripped.
type Breaker struct {
	Tripped bool       `json:"tripped"`
	At      *time.Time `json:"at,omitempty"`
	Servers int        `json:"servers,omitempty"`
	Of      int        `json:"of,omitempty"`
	States  []string   `json:"states"`
}

// Budget is how far a budget is used by what the servers tell, for one value of its label.
type Budget struct {
	Name   string `json:"name"`
	Action string `json:"action"`
	Value  string `json:"value,omitempty"`
	Used   int    `json:"used"`
	Max    int    `json:"max"`
	// Exhausted says that there is no room, or that the manager says so.
	Exhausted bool `json:"exhausted,omitempty"`
}

// heldOf says what is held back.
func heldOf(in Input) Held {
	h := Held{Running: running.Of(in.Leases, in.Now), Withheld: withheldOf(in.Servers)}
	c := in.Control
	if c == nil {
		return h
	}
	h.NotAcknowledged = c.Status.ObservedGeneration < c.Generation
	for i := range c.Spec.Freezes {
		if f := &c.Spec.Freezes[i]; !freeze.Ended(f, in.Now) {
			h.Freezes = append(h.Freezes, freezeOf(f, in.Servers))
		}
	}
	if b := c.Spec.Breaker; b != nil {
		h.Breaker = &Breaker{Tripped: freeze.Tripped(c), States: fleet.States(b)}
		if trip := c.Status.Trip; trip != nil && h.Breaker.Tripped {
			at := trip.At.UTC()
			h.Breaker.At, h.Breaker.Servers, h.Breaker.Of = &at, int(trip.Servers), int(trip.Of)
		}
	}
	h.Budgets = budgetsOf(c, in.Servers, in.Now)
	return h
}

func withheldOf(servers []v1alpha1.Server) []Count {
	reasons := tally{}
	for i := range servers {
		w := meta.FindStatusCondition(servers[i].Status.Conditions, v1alpha1.ConditionWithheld)
		if w != nil && w.Status == metav1.ConditionTrue {
			reasons[w.Reason]++
		}
	}
	return reasons.counts()
}

func freezeOf(f *policyv1alpha1.Freeze, servers []v1alpha1.Server) Freeze {
	one := Freeze{Name: f.Name, Level: string(f.Level), Reason: f.Reason, By: f.By}
	if f.Selector != nil {
		one.Selector = metav1.FormatLabelSelector(f.Selector)
	}
	if f.Until != nil {
		until := f.Until.UTC()
		one.Until = &until
	}
	selector := freeze.Selector(f.Selector)
	for i := range servers {
		if selector.Matches(labels.Set(servers[i].Labels)) {
			one.Servers++
		}
	}
	return one
}

// budgetsOf counts budgets as the manager does, those without room first. An agent that erases on after its server
// moved is in no Server, so the manager's own word on a budget without room goes before this count.
func budgetsOf(c *policyv1alpha1.FleetControl, servers []v1alpha1.Server, now time.Time) []Budget {
	waits := meta.IsStatusConditionTrue(c.Status.Conditions, policyv1alpha1.ConditionBudgetExhausted)
	var all []Budget
	for _, u := range fleet.Count(c.Spec.Budgets, servers, nil, now) {
		i := slices.IndexFunc(c.Spec.Budgets, func(b policyv1alpha1.Budget) bool { return b.Name == u.Name })
		one := Budget{Name: u.Name, Action: string(c.Spec.Budgets[i].Action), Value: u.Value, Used: int(u.Used),
			Max: int(u.Max)}
		for _, said := range c.Status.Usage {
			if waits && said.Name == u.Name && said.Value == u.Value {
				one.Used, one.Exhausted = max(one.Used, int(said.Used)), true
			}
		}
		one.Exhausted = one.Exhausted || one.Used >= one.Max
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b Budget) int {
		switch {
		case a.Exhausted == b.Exhausted:
			return 0
		case a.Exhausted:
			return -1
		}
		return 1
	})
	return all
}
