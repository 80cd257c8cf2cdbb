// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/internal/freeze"
)

// status is what holds the fleet back at a moment.
type status struct {
	Servers int `json:"servers"`
	// NotAcknowledged says that the manager may still go by what was stored before.
	NotAcknowledged bool `json:"notAcknowledged,omitempty"`

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
	s := status{Servers: len(servers), NotAcknowledged: notAcknowledged(c), Freezes: []freezeStatus{}, Budgets: []budgetStatus{},
		Withheld: []withheldStatus{}}
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
		b := lists.Find(c.Spec.Budgets, func(b *policyv1alpha1.Budget) bool { return b.Name == u.Name }) // of which Count made it
		one := budgetStatus{Name: u.Name, Action: b.Action, Per: b.Per, Value: u.Value, Used: u.Used, Max: u.Max}
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

// page writes a status for people, a section for each thing that can hold a server back.
type page struct{ *terminal.Terminal }

func (p *page) show(s *status) {
	if s.NotAcknowledged {
		p.Printf("%s: the manager has not taken up the last change of FleetControl; it may still act by the former one\n\n",
			p.Paint(terminal.Bad, "Not acknowledged", 0))
	}
	for i, section := range []func(*status){p.freezes, p.budgets, p.breaker, p.withheld} {
		if i > 0 {
			p.Printf("\n")
		}
		section(s)
	}
}

func (p *page) freezes(s *status) {
	if len(s.Freezes) == 0 {
		p.Printf("Freezes:   %s\n", p.Paint(terminal.Good, "none", 0))
		return
	}
	p.Printf("Freezes:\n")
	p.Table([]string{"  NAME", "LEVEL", "SERVERS", "SELECTOR", "ENDS", "BY", "REASON"}, lists.Map(s.Freezes, func(f *freezeStatus) []string {
		return []string{"  " + f.Name, string(f.Level), fmt.Sprintf("%d of %d", f.Covers, s.Servers), cmp.Or(f.Selector, "every server"),
			p.end(f), cmp.Or(f.By, "-"), cmp.Or(f.Reason, "-")}
	}))
}

func (p *page) end(f *freezeStatus) string {
	switch {
	case f.Ended:
		return "ended"
	case f.Until == nil:
		return "never"
	default:
		return "in " + f.Until.Sub(p.Now).Round(time.Second).String()
	}
}

func (p *page) budgets(s *status) {
	if len(s.Budgets) == 0 {
		p.Printf("Budgets:   none\n")
		return
	}
	p.Printf("Budgets:\n")
	p.Table([]string{"  NAME", "ACTION", "FOR", "USED", "COUNTED", "ROOM"}, lists.Map(s.Budgets, func(b *budgetStatus) []string {
		per := "the fleet"
		if b.Per != "" {
			per = b.Per + "=" + b.Value
		}
		return []string{"  " + b.Name, string(b.Action), per, used(b), within(b), p.room(b)}
	}))
}

func within(b *budgetStatus) string {
	if b.WindowSeconds == 0 {
		return "at a time"
	}
	return "within " + (time.Duration(b.WindowSeconds) * time.Second).String()
}

func (p *page) room(b *budgetStatus) string {
	switch {
	case b.Used < b.Max:
		return "now"
	case b.FreeAt != nil:
		return "in " + b.FreeAt.Sub(p.Now).Round(time.Second).String()
	case b.Max == 0:
		return "never"
	default:
		return "when one ends"
	}
}

// used says how far a budget is used. One that allows nothing has nothing to be a part of.
func used(b *budgetStatus) string {
	if b.Max == 0 {
		return fmt.Sprintf("%d; none is allowed", b.Used)
	}
	return fmt.Sprintf("%d of %d", b.Used, b.Max)
}

func (p *page) breaker(s *status) {
	switch b := s.Breaker; {
	case b == nil:
		p.Printf("Breaker:   none\n")
	case b.Tripped:
		p.Printf("Breaker:   %s at %s: %d of %d servers had entered the states that it watches (%s); metalaw unfreeze --breaker closes it\n",
			p.Paint(terminal.Bad, "tripped", 0), b.Trip.At.UTC().Format(time.RFC3339), b.Trip.Servers, b.Trip.Of, strings.Join(b.States, ", "))
	default:
		p.Printf("Breaker:   %s; it trips when more than %d%% of the servers, and %d of them at least, enter %s\n",
			p.Paint(terminal.Good, "closed", 0), b.MaxPercent, b.MinServers, either(b.States))
	}
}

// either names states of which each counts.
func either(states []string) string {
	last := len(states) - 1
	if last < 1 {
		return strings.Join(states, "")
	}
	return strings.Join(states[:last], ", ") + " or " + states[last]
}

func (p *page) withheld(s *status) {
	if len(s.Withheld) == 0 {
		p.Printf("Withheld:  from no server\n")
		return
	}
	p.Printf("Withheld:  from %d of %d servers\n", len(s.Withheld), s.Servers)
	p.Table([]string{"  NAME", "STATE", "REASON", "SINCE", "MESSAGE"}, lists.Map(s.Withheld, func(w *withheldStatus) []string {
		return []string{"  " + w.Name, cmp.Or(w.State, "-"), w.Reason, p.Now.Sub(w.Since.Time).Round(time.Second).String(), w.Message}
	}))
}
