// SPDX-License-Identifier: Apache-2.0

// Package propose decides which servers with broken parts are proposed to go out of service, and which of them are cordoned. It is
// pure. A person decides what becomes of a server: nothing here powers, erases or moves one.
package propose

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// Day is the time over which cordons are counted.
const Day = 24 * time.Hour

// Settings is what the policy says.
type Settings struct {
	// Faults are those for which a server is proposed.
	Faults []v1alpha1.HardwareFault
	// MostPercent is how many servers of a model are cordoned in a day, in percent and at least one; 0 cordons none.
	MostPercent int
}

// Server is what the decision depends on of one server.
type Server struct {
	Name string
	// Model tells servers of one model from others.
	Model string
	Parts []v1alpha1.FaultyPart
	// Claimed says that a claim holds it.
	Claimed bool
	// Unclaimable says that it is cordoned, and Ours that the manager did that.
	Unclaimable, Ours bool
	// CordonedAt is when the manager cordoned it last; zero where it never did.
	CordonedAt time.Time
	// Decided says that a person has decided that it goes out of service.
	Decided bool
	// LeftAlone says that nobody may touch it.
	LeftAlone bool
}

// Input is everything that the decision depends on. Decide changes none of it.
type Input struct {
	Now      time.Time
	Settings Settings
	// Servers are all servers: those without a fault count for their model.
	Servers []Server
}

// Verdict is what is to be so of one server.
type Verdict struct {
	Name string
	// Cordon says that the server is to be cordoned now.
	Cordon bool
	// Condition is FaultyHardware as it is to be, without its times; nil where there is to be none.
	Condition *metav1.Condition
}

// Output is the verdict on each server that is not left alone, and when to decide again by the clock alone; zero for no such time.
type Output struct {
	Verdicts []Verdict
	Again    time.Time
}

// Decide says what is to be so of each server. Where not all may be cordoned, those go first whose fault was seen first.
func Decide(in Input) Output {
	d := &decision{Input: in, most: map[string]int{}, cordoned: map[string]int{}}
	d.count()
	var wanting []int
	var out Output
	for i := range in.Servers {
		s := &in.Servers[i]
		if s.LeftAlone {
			continue
		}
		v := Verdict{Name: s.Name}
		parts := d.covered(s)
		switch {
		case s.Decided:
		case len(parts) == 0:
			v.Condition = gone(s)
		case d.mayCordon(s, parts):
			wanting = append(wanting, len(out.Verdicts))
			v.Condition = condition(v1alpha1.ReasonCordonLimit, parts, d.limit(s.Model))
		default:
			v.Condition = d.standing(s, parts)
		}
		out.Verdicts = append(out.Verdicts, v)
	}
	d.grant(wanting, out.Verdicts)
	out.Again = d.again
	return out
}

type decision struct {
	Input
	// most is how many servers of a model may be cordoned in a day, and cordoned how many were.
	most, cordoned map[string]int
	// again is when the first of what is counted is a day old.
	again time.Time
}

func (d *decision) count() {
	for i := range d.Servers {
		s := &d.Servers[i]
		d.most[s.Model]++
		if d.recent(s) {
			d.cordoned[s.Model]++
		}
	}
	for model, servers := range d.most {
		d.most[model] = max(1, servers*d.Settings.MostPercent/100)
		if d.Settings.MostPercent == 0 {
			d.most[model] = 0
		}
	}
}

// recent says that the manager cordoned a server within a day.
func (d *decision) recent(s *Server) bool {
	return !s.CordonedAt.IsZero() && d.Now.Sub(s.CordonedAt) < Day
}

// covered are the broken parts for which the policy has a server proposed.
func (d *decision) covered(s *Server) (parts []v1alpha1.FaultyPart) {
	for _, p := range s.Parts {
		if slices.Contains(d.Settings.Faults, p.Fault) {
			parts = append(parts, p)
		}
	}
	return parts
}

// mayCordon says that only the limit keeps the manager from cordoning a server.
func (d *decision) mayCordon(s *Server, parts []v1alpha1.FaultyPart) bool {
	return d.Settings.MostPercent > 0 && !s.Claimed && !s.Unclaimable && !d.kept(s, parts)
}

// kept says that a person uncordoned the server: no part broke since the manager cordoned it, or that is less than a day ago.
func (d *decision) kept(s *Server, parts []v1alpha1.FaultyPart) bool {
	if s.Unclaimable || s.CordonedAt.IsZero() {
		return false
	}
	broke := func(p v1alpha1.FaultyPart) bool { return p.Since.After(s.CordonedAt) }
	return d.recent(s) || !slices.ContainsFunc(parts, broke)
}

func (d *decision) wake(s *Server) {
	if end := s.CordonedAt.Add(Day); d.again.IsZero() || end.Before(d.again) {
		d.again = end
	}
}

// standing is the condition of a server with a fault that the manager does not cordon now.
func (d *decision) standing(s *Server, parts []v1alpha1.FaultyPart) *metav1.Condition {
	switch {
	case s.Unclaimable && s.Ours:
		return condition(v1alpha1.ReasonFaultCordoned, parts, cordonedByManager)
	case s.Unclaimable:
		return condition(v1alpha1.ReasonFaultProposed, parts, cordonedBefore)
	case d.kept(s, parts):
		if d.recent(s) {
			d.wake(s)
		}
		return condition(v1alpha1.ReasonFaultKept, parts, keptInService)
	case s.Claimed:
		return condition(v1alpha1.ReasonFaultProposed, parts, heldByClaim)
	}
	return condition(v1alpha1.ReasonFaultProposed, parts, cordonsNone)
}

// grant has as many servers cordoned as the limit allows. wanting are places in all.
func (d *decision) grant(wanting []int, all []Verdict) {
	servers := map[string]*Server{}
	for i := range d.Servers {
		servers[d.Servers[i].Name] = &d.Servers[i]
	}
	slices.SortFunc(wanting, func(a, b int) int {
		one, other := servers[all[a].Name], servers[all[b].Name]
		return cmp.Or(d.first(one).Compare(d.first(other)), cmp.Compare(one.Name, other.Name))
	})
	full := map[string]bool{}
	for _, i := range wanting {
		s := servers[all[i].Name]
		if d.cordoned[s.Model] >= d.most[s.Model] {
			full[s.Model] = true
			continue
		}
		d.cordoned[s.Model]++
		all[i].Cordon = true
		all[i].Condition = condition(v1alpha1.ReasonFaultCordoned, d.covered(s), cordonedByManager)
	}
	for i := range d.Servers {
		if s := &d.Servers[i]; full[s.Model] && d.recent(s) {
			d.wake(s)
		}
	}
	if len(full) > 0 && d.again.IsZero() { // what counts was cordoned just now
		d.again = d.Now.Add(Day)
	}
}

// first is when the first fault of a server was seen.
func (d *decision) first(s *Server) time.Time {
	var first time.Time
	for _, p := range d.covered(s) {
		if first.IsZero() || p.Since.Time.Before(first) {
			first = p.Since.Time
		}
	}
	return first
}
