// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish/emulator"
)

// ends says that nobody wants a maintenance any more.
func ends(m *v1alpha1.ServerMaintenance) bool {
	return !m.DeletionTimestamp.IsZero() || m.Annotations[v1alpha1.AbortAnnotation] != ""
}

// judgeService judges a write to a machine in maintenance: a maintenance of this manager must have it, and where a claim holds the machine
// its holder must have agreed, or was not to be asked.
func (r *record) judgeService(machine string, w emulator.Write, a asked, found func(string, string, ...any)) {
	switch why := r.consentTo(machine, w.Time, false); {
	case why == "":
		found("6 hands off", "it was in maintenance, and none of this manager's had it")
	case why == noConsent && (a.ResetType != "" || a.arms()):
		found("no reboot without consent", "its claim had not approved of the maintenance that had it")
	}
}

const noConsent, consented = "no consent", "consent"

// consentTo says whether a maintenance of this manager had a machine at any moment around an act, and whether the holder of the machine had
// agreed to one that had; empty where none had it. What a maintenance boots takes the holder's own approval.
func (r *record) consentTo(machine string, at time.Time, boots bool) string {
	from, to := window(at)
	best := ""
	r.server(machine, at).ever(from, to, func(s *v1alpha1.Server) bool {
		if uid := s.Annotations[v1alpha1.MaintenanceUIDAnnotation]; uid != "" && s.Spec.ServerMaintenanceRef != nil {
			for _, v := range r.maintenances[uidOf(uid)] {
				if v.gone || v.at.After(to) || boots && v.object.Spec.ServerBootConfigurationTemplate == nil {
					continue
				}
				if best == "" {
					best = noConsent
				}
				if r.agreed(machine, at, v.object, boots || v.object.Spec.ServerBootConfigurationTemplate != nil) {
					best = consented
				}
			}
		}
		return best == consented
	})
	return best
}

// agreed says that no claim held a machine throughout the time around an act, or that its holder approved at any moment since a maintenance
// was made, or that the maintenance was enforced, which lets it boot nothing.
func (r *record) agreed(machine string, at time.Time, m *v1alpha1.ServerMaintenance, boots bool) bool {
	tenant := r.held(machine, at, anyClaim)
	if tenant == "" || m.Spec.Policy == v1alpha1.ServerMaintenancePolicyEnforced && !boots {
		return true
	}
	return r.claims[tenant].ever(m.CreationTimestamp.Time, at.Add(after), func(c *v1alpha1.ServerClaim) bool {
		_, approves := c.Labels[v1alpha1.MaintenanceApprovedLabel]
		return approves
	})
}

// judgeHolders compares a new version of a maintenance with the others of its server: one at a time has it. It is called with the lock held.
func (r *record) judgeHolders(at time.Time, m *v1alpha1.ServerMaintenance) {
	has := func(m *v1alpha1.ServerMaintenance) bool {
		return m.Status.State == v1alpha1.ServerMaintenanceStateInMaintenance && !ends(m)
	}
	server := m.Spec.ServerRef.Name
	if !has(m) || r.meddled[server] {
		return
	}
	for uid, h := range r.maintenances {
		if other, there := h.last(); there && uid != m.UID && other.Spec.ServerRef.Name == server && has(other) {
			r.breach("one maintenance at a time", machineOf(server), at, "%s and %s have it", other.Name, m.Name)
		}
	}
}

// judgeDirt compares a new version of a server with the one before: nothing in maintenance proves a machine clean, and one that is out of
// service is given to nobody. It is called with the lock held.
func (r *record) judgeDirt(at time.Time, was, s *v1alpha1.Server) {
	dirty := func(s *v1alpha1.Server) bool {
		return s.Status.Lifecycle != nil && slices.Contains(s.Status.Lifecycle.Marks, "Dirty")
	}
	machine := machineOf(s.Name)
	if was.Status.State == v1alpha1.StateMaintenance && dirty(was) && !dirty(s) && !r.waivedBy(machine, at) {
		r.breach("nothing in maintenance is clean", machine, at, "it was Dirty in Maintenance, and is not in %s", s.Status.State)
	}
	if was.Status.State == v1alpha1.StateDecommissioned && was.Spec.ServerClaimRef == nil && s.Spec.ServerClaimRef != nil {
		r.breach("6 hands off", machine, at, "it is out of service, and was given to claim %s", s.Spec.ServerClaimRef.Name)
	}
}
