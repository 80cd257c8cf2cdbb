// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/maintenance/grant"
	"github.com/metalaw/metalaw/controllers/maintenance/hold"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/internal/freeze"
	"github.com/metalaw/metalaw/policies"
)

// snapshot is what the grants depend on. refused says why one may not be granted whatever its server does, and mayEnforce that its maker
// is known to hold the right to that as far as anybody asked.
func (v *view) snapshot(refused func(*v1alpha1.ServerMaintenance) grant.Answer, mayEnforce func(*v1alpha1.ServerMaintenance) bool) grant.Snapshot {
	s := grant.Snapshot{Now: v.at, Policy: v.setting, Servers: make(map[string]*grant.Server, len(v.servers)), Budgets: budgets(v.control),
		ClaimsWait: v.claimsWait}
	for name, one := range v.servers {
		s.Servers[name] = v.serverOf(one)
	}
	for server, list := range v.of {
		for _, m := range list {
			if one, counts := v.maintenanceOf(m, server); counts {
				one.Refused, one.Enforced = refused(m), one.Enforced && mayEnforce(m)
				s.Maintenances = append(s.Maintenances, one)
			}
		}
	}
	return s
}

func (v *view) serverOf(s *v1alpha1.Server) *grant.Server {
	one := &grant.Server{Labels: s.Labels, Rack: policies.RackOf(s), Down: down(s), EndedAt: endedAt(s)}
	claim := v.claimOf(s)
	if claim != nil {
		one.Claim = &grant.Claim{UID: claim.UID, NamespacedName: types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name},
			Approved: hold.Approved(claim), DrainRequired: claim.Annotations[v1alpha1.DrainRequiredAnnotation] == "true"}
	}
	if ref := s.Spec.ServerMaintenanceRef; ref != nil {
		one.Holder = &types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		one.HolderUID = types.UID(s.Annotations[v1alpha1.MaintenanceUIDAnnotation])
	}
	if len(v.of[s.Name]) == 0 {
		return one // nothing asks for it, and the rest is looked at for the one that is asked for
	}
	record := s.Annotations[v1alpha1.ReleasedCountedAnnotation]
	at, err := time.Parse(time.RFC3339, s.Annotations[v1alpha1.ReleasedAtAnnotation])
	if err == nil && record != v1alpha1.ReleasedNoGrace {
		one.ReleasedAt = v.clock.Moment(counted.Parse(record), at)
	}
	one.Facts, one.Unready, one.Frozen = policies.GrantFacts(s, claim), unready(s, claim), v.frozen(s)
	return one
}

// frozen says what holds maintenances of a server back; empty for nothing.
func (v *view) frozen(s *v1alpha1.Server) string {
	if v.halted != "" {
		return v.halted
	}
	if held := freeze.On(v.control, s.Labels, v.at); held.Maintenance() {
		return held.Message
	}
	return ""
}

// thaws is when the first freeze ends by itself; zero where none does.
func (v *view) thaws() time.Time {
	var first time.Time
	if v.control == nil {
		return first
	}
	for i := range v.control.Spec.Freezes {
		if f := &v.control.Spec.Freezes[i]; f.Until != nil && f.Until.After(v.at) && (first.IsZero() || f.Until.Time.Before(first)) {
			first = f.Until.Time
		}
	}
	return first
}

// untouched are the states in which a server is left to somebody else.
var untouched = map[v1alpha1.ServerState]string{
	v1alpha1.StateParked:         "it is Parked, and an operator has it",
	v1alpha1.StateObserving:      "it is Observing: the machine is not the manager's",
	v1alpha1.StateDecommissioned: "it is Decommissioned",
}

// unready says why no maintenance begins on a server as it is; empty where one may.
func unready(s *v1alpha1.Server, claim *v1alpha1.ServerClaim) string {
	switch l := s.Status.Lifecycle; {
	case !s.DeletionTimestamp.IsZero():
		return "it is being deleted"
	case v1alpha1.Ignored(s):
		return "it is left alone (" + v1alpha1.IgnoredBy(s) + ")"
	case l == nil:
		return "its lifecycle has not begun"
	case untouched[s.Status.State] != "":
		return untouched[s.Status.State]
	case l.Credential != nil && l.Credential.Purpose == v1alpha1.ProbePurposeWipe:
		return "an erase of its disks is prepared or runs"
	case meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionIdentityMismatch):
		return "another machine answers in its place"
	case s.Spec.ServerClaimRef == nil || claim != nil:
		return ""
	case !v1alpha1.ReleaseRecorded(s):
		return "the claim that it names is not found, and its machine may run for it"
	case s.Status.State == v1alpha1.StateReserved:
		return "its claim is ending"
	}
	return ""
}

// outOfUse are the states in which nobody can use a server.
var outOfUse = []v1alpha1.ServerState{v1alpha1.StateInitial, v1alpha1.StateDiscovery, v1alpha1.StateCleanup, v1alpha1.StateError,
	v1alpha1.StateMaintenance, v1alpha1.StateParked}

// down says that a server is out of use, for whatever cause. One that is Decommissioned is no part of the fleet any more.
func down(s *v1alpha1.Server) bool {
	if s.Status.State == v1alpha1.StateDecommissioned {
		return false
	}
	return s.Spec.ServerMaintenanceRef != nil || slices.Contains(outOfUse, s.Status.State) ||
		meta.IsStatusConditionFalse(s.Status.Conditions, v1alpha1.ConditionBMCReachable) ||
		meta.IsStatusConditionFalse(s.Status.Conditions, v1alpha1.ConditionHealthy)
}

// endedAt is when a server was last taken from a maintenance, as far as its history goes back; zero where it was not.
func endedAt(s *v1alpha1.Server) time.Time {
	var last time.Time
	if l := s.Status.Lifecycle; l != nil && s.Spec.ServerMaintenanceRef == nil {
		for i := range l.History {
			if move := &l.History[i]; move.From == v1alpha1.StateMaintenance && move.At.After(last) {
				last = move.At.Time
			}
		}
	}
	return last
}

// maintenanceOf is what the grants depend on of a maintenance; false where they do not, because it is over.
func (v *view) maintenanceOf(m *v1alpha1.ServerMaintenance, server string) (grant.Maintenance, bool) {
	s := v.servers[server]
	holds, ends, failed := hold.Holds(s, m), hold.Ends(m), hold.Failed(m)
	moves := holds && m.Spec.ServerRef.Name != server
	if !holds && (v1alpha1.Ignored(m) || ends && (!failed || hold.Aborted(m))) {
		return grant.Maintenance{}, false
	}
	one := grant.Maintenance{NamespacedName: types.NamespacedName{Namespace: m.Namespace, Name: m.Name}, UID: m.UID, Server: server,
		Labels: m.Labels, Annotations: m.Annotations, Created: m.CreationTimestamp.Time, Priority: m.Spec.Priority,
		Enforced: m.Spec.Policy == v1alpha1.ServerMaintenancePolicyEnforced, Boots: m.Spec.ServerBootConfigurationTemplate != nil,
		Expected: expected(m), Failed: failed, Ends: (ends || moves) && holds}
	if asked := m.Status.Asked; asked != nil {
		one.Asked, one.AskedAt = asked.ClaimUID, v.clock.Moment(counted.From(asked.Counted), asked.At.Time)
	}
	if m.Status.GrantedAt != nil && holds {
		one.GrantedAt = m.Status.GrantedAt.Time
	}
	return one, true
}

// expected is how long a maintenance says that it will hold its server; 0 where it does not say, or not so that it can be read.
func expected(m *v1alpha1.ServerMaintenance) time.Duration {
	d, err := time.ParseDuration(m.Annotations[v1alpha1.ExpectedDurationAnnotation])
	if err != nil {
		return 0
	}
	return max(d, 0)
}

// budgets are those of a FleetControl for maintenances.
func budgets(c *policyv1alpha1.FleetControl) []grant.Budget {
	var all []grant.Budget
	if c == nil {
		return nil
	}
	for i := range c.Spec.Budgets {
		b := &c.Spec.Budgets[i]
		if b.Action != policyv1alpha1.ActionMaintenance {
			continue
		}
		selector := freeze.Selector(b.Selector)
		most, percent := int(ptr.Deref(b.Max, 0)), int(ptr.Deref(b.MaxPercent, 0))
		all = append(all, grant.Budget{Name: b.Name, Per: b.Per,
			Covers: func(of map[string]string) bool { return selector.Matches(labels.Set(of)) },
			Most:   func(servers int) int { return max(most, servers*percent/100) }})
	}
	return all
}

// planned turns an answer into that of a manager which only plans.
func planned(g *grant.Grant, because string) {
	if g.Granted {
		g.Message = "It would be granted now. " + g.Message
	} else {
		g.Message = fmt.Sprintf("It would wait (%s). %s", g.Reason, g.Message)
	}
	g.Granted, g.Asks, g.Reason, g.Message = false, false, v1alpha1.ReasonPlanOnly, because+" "+g.Message
}

// conditionOf is a condition of a maintenance; an empty one where it has none.
func conditionOf(status *v1alpha1.ServerMaintenanceStatus, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}
