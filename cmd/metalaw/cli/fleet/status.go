// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/internal/freeze"
)

// status is what holds the fleet back at a moment.
type status struct {
	Servers  int              `json:"servers"`
	Freezes  []freezeStatus   `json:"freezes"`
	Budgets  []budgetStatus   `json:"budgets"`
	Breaker  *breakerStatus   `json:"breaker,omitempty"`
	Withheld []withheldStatus `json:"withheld"`
}

// freezeStatus is one freeze and how many servers it covers.
type freezeStatus struct {
	Name     string                     `json:"name"`
	Level    policyv1alpha1.FreezeLevel `json:"level"`
	Selector string                     `json:"selector,omitempty"`
	Reason   string                     `json:"reason,omitempty"`
	By       string                     `json:"by,omitempty"`
	Until    *metav1.Time               `json:"until,omitempty"`
	// Ended says that it holds nothing back any more.
	Ended  bool `json:"ended,omitempty"`
	Covers int  `json:"covers"`
}

// budgetStatus is how far one budget is used, for one value of its label.
type budgetStatus struct {
	Name   string                     `json:"name"`
	Action policyv1alpha1.FleetAction `json:"action"`
	Per    string                     `json:"per,omitempty"`
	Value  string                     `json:"value,omitempty"`
	Used   int32                      `json:"used"`
	Max    int32                      `json:"max"`
	// WindowSeconds is for how long an action counts; 0 for wipes, which count as long as they last.
	WindowSeconds int32 `json:"windowSeconds,omitempty"`
	// FreeAt is when there is room again; left out where there is some, and where nobody can tell.
	FreeAt *metav1.Time `json:"freeAt,omitempty"`
}

// breakerStatus is what the breaker watches, and whether it has tripped.
type breakerStatus struct {
	MaxPercent int32 `json:"maxPercent"`
	MinServers int32 `json:"minServers"`
	// States are the states that count.
	States  []string `json:"states"`
	Tripped bool     `json:"tripped"`
	// Trip is the last trip, also one that was acknowledged.
	Trip           *policyv1alpha1.BreakerTrip `json:"trip,omitempty"`
	AcknowledgedAt *metav1.MicroTime           `json:"acknowledgedAt,omitempty"`
}

// withheldStatus is a server from which something is held back.
type withheldStatus struct {
	Name    string      `json:"name"`
	State   string      `json:"state,omitempty"`
	Reason  string      `json:"reason"`
	Message string      `json:"message,omitempty"`
	Since   metav1.Time `json:"since"`
}

// statusOf puts together what a FleetControl and the servers say. Budgets are counted here, by the manager's own rules:
// the FleetControl's status shows them only while somebody waits for one.
func statusOf(c *policyv1alpha1.FleetControl, servers []v1alpha1.Server, inventories []policyv1alpha1.ServerInventory, now time.Time) status {
	s := status{Servers: len(servers), Freezes: []freezeStatus{}, Budgets: []budgetStatus{}, Withheld: []withheldStatus{}}
	for i := range c.Spec.Freezes {
		f := &c.Spec.Freezes[i]
		one := freezeStatus{Name: f.Name, Level: f.Level, Reason: f.Reason, By: f.By, Until: f.Until,
			Ended: freeze.Ended(f, now), Covers: covered(f, servers)}
		if f.Selector != nil {
			one.Selector = metav1.FormatLabelSelector(f.Selector)
		}
		s.Freezes = append(s.Freezes, one)
	}
	for _, u := range fleet.Count(c.Spec.Budgets, servers, inventories, now) {
		b := budgetOf(c, u.Name)
		one := budgetStatus{Name: u.Name, Action: b.Action, Per: b.Per, Value: u.Value, Used: u.Used}
		if b.Max != nil {
			one.Max = *b.Max
		}
		if !u.FreeAt.IsZero() {
			one.FreeAt = &metav1.Time{Time: u.FreeAt}
		}
		if b.Action != policyv1alpha1.ActionWipe {
			one.WindowSeconds = int32(fleet.Window(b.WindowSeconds).Seconds())
		}
		s.Budgets = append(s.Budgets, one)
	}
	if b := c.Spec.Breaker; b != nil {
		s.Breaker = &breakerStatus{MaxPercent: b.MaxPercent, MinServers: fleet.MinServers(b), States: fleet.States(b),
			Tripped: freeze.Tripped(c), Trip: c.Status.Trip, AcknowledgedAt: b.AcknowledgedAt}
	}
	for i := range servers {
		if w := meta.FindStatusCondition(servers[i].Status.Conditions, v1alpha1.ConditionWithheld); w != nil && w.Status == metav1.ConditionTrue {
			s.Withheld = append(s.Withheld, withheldStatus{Name: servers[i].Name, State: string(servers[i].Status.State),
				Reason: w.Reason, Message: w.Message, Since: w.LastTransitionTime})
		}
	}
	slices.SortFunc(s.Withheld, func(a, b withheldStatus) int { return strings.Compare(a.Name, b.Name) })
	return s
}

func covered(f *policyv1alpha1.Freeze, servers []v1alpha1.Server) int {
	selector, n := freeze.Selector(f.Selector), 0
	for i := range servers {
		if selector.Matches(labels.Set(servers[i].Labels)) {
			n++
		}
	}
	return n
}

func budgetOf(c *policyv1alpha1.FleetControl, name string) *policyv1alpha1.Budget {
	for i := range c.Spec.Budgets {
		if c.Spec.Budgets[i].Name == name {
			return &c.Spec.Budgets[i]
		}
	}
	return &policyv1alpha1.Budget{}
}
