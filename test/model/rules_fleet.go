// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// tripPatience is how long a breaker may take to trip, with the manager up.
const tripPatience = 6 * time.Second

// tripped says that the breaker tripped, and that nobody has acknowledged it since.
func tripped(c *policyv1alpha1.FleetControl) bool {
	b, trip := c.Spec.Breaker, c.Status.Trip
	return b != nil && trip != nil && (b.AcknowledgedAt == nil || b.AcknowledgedAt.Time.Before(trip.At.Time))
}

// judgeBreaker finds a breaker that should have tripped, and has not.
func (r *record) judgeBreaker(calm, now time.Time) {
	from := now.Add(-tripPatience)
	c, there := r.control.last()
	if !there || c.Spec.Breaker == nil || calm.IsZero() || calm.After(from) {
		return
	}
	b := c.Spec.Breaker
	if !r.control.throughout(from, now, func(was *policyv1alpha1.FleetControl) bool {
		return !tripped(was) && equality.Semantic.DeepEqual(was.Spec.Breaker, b)
	}) {
		return
	}
	var entered []string
	of := 0
	for name, h := range r.servers {
		if _, there := h.last(); !there {
			continue
		}
		of++
		if h.ever(r.begun, from, func(s *v1alpha1.Server) bool {
			l := s.Status.Lifecycle
			return l != nil && in(v1alpha1.StateError, v1alpha1.StateCleanup)(s) && l.EnteredAt.After(b.AcknowledgedAt.Time)
		}) {
			entered = append(entered, name)
		}
	}
	if len(entered) >= int(*b.MinServers) && len(entered)*100 > int(b.MaxPercent)*of {
		slices.Sort(entered)
		r.breach("8 breaker", machineOf(entered[0]), now, "%s of %d servers entered Cleanup or Error, and the breaker did not trip",
			strings.Join(entered, ", "), of)
	}
}

// judgeMaintenance asks whether a machine was in other hands.
func (r *record) judgeMaintenance(machine string, w emulator.Write, a asked, found func(string, string, ...any)) {
	from, _ := window(w.Time)
	named := func(s *v1alpha1.Server) bool { return s.Spec.ServerMaintenanceRef != nil }
	wiped := in(v1alpha1.StateCleanup) // which is not cut off
	switch {
	case r.throughout(machine, w.Time, in(v1alpha1.StateMaintenance)):
		r.judgeService(machine, w, a, found)
	case (a.ResetType != "" || a.arms()) && r.throughout(machine, w.Time, named) && !r.server(machine, w.Time).ever(from, w.Time, wiped):
		found("6 hands off", "it was handed to a maintenance")
	}
}

// judgeHands compares a new version of a server with the one before, as to whose hands it is in. It is called with the lock
// held.
func (r *record) judgeHands(at time.Time, s *v1alpha1.Server) {
	machine := machineOf(s.Name)
	was, there := r.servers[s.Name].last()
	if !there || was.UID != s.UID {
		r.judgeNewcomer(at, s)
		return
	}
	r.judgeDirt(at, was, s)
	if v1alpha1.Ignored(was) && s.Annotations[v1alpha1.OperationAnnotation] == "" && at.Sub(r.lifted[s.Name]) > before {
		r.breach("6 hands off", machine, at, "it was to be left alone, and somebody took that annotation away")
	}
	if s.Status.State == v1alpha1.StateMaintenance && was.Status.State != v1alpha1.StateMaintenance &&
		s.Spec.ServerMaintenanceRef == nil && was.Spec.ServerMaintenanceRef == nil {
		from, to := window(at)
		if !r.servers[s.Name].ever(from, to, func(s *v1alpha1.Server) bool { return s.Spec.ServerMaintenanceRef != nil }) {
			r.breach("nobody is sent to maintenance unasked", machine, at, "it names no maintenance, and moved from %s", was.Status.State)
		}
	}
	if was.Spec.ServerMaintenanceRef != nil && was.Spec.ServerClaimRef == nil && s.Spec.ServerClaimRef != nil {
		r.breach("6 hands off", machine, at, "it is in maintenance, and was given to claim %s", s.Spec.ServerClaimRef.Name)
	}
}

// judgeNewcomer judges a new Server: a system that appears in the place of another is managed only once it is accepted.
func (r *record) judgeNewcomer(at time.Time, s *v1alpha1.Server) {
	for _, name := range r.serversOf(machineOf(s.Name)) {
		if other, there := r.servers[name].last(); there && name != s.Name && !r.accepted[strings.ToLower(s.Spec.SystemUUID)] {
			r.breach("7 a new system waits", machineOf(s.Name), at, "%s was made for system %s, which nobody accepted in the place of %s (%s)",
				s.Name, s.Spec.SystemUUID, name, other.Spec.SystemUUID)
		}
	}
}
