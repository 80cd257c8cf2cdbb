// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/maintenance"
)

// MaintenanceIsOurs says that a maintenance is the one that the server names and that the manager granted it to. Another program's has
// no UID on record, and one that was deleted and made again has another.
func MaintenanceIsOurs(s *v1alpha1.Server, m *v1alpha1.ServerMaintenance) bool {
	ref := s.Spec.ServerMaintenanceRef
	return ref != nil && m != nil && m.UID != "" && ref.Namespace == m.Namespace && ref.Name == m.Name &&
		s.Annotations[v1alpha1.MaintenanceUIDAnnotation] == string(m.UID)
}

// MaintenanceConsented says that no claim holds the server but one whose holder was asked or told before the
// maintenance began. A reference to a claim that is not found is unknown, not ended: what runs may be that claim's.
func MaintenanceConsented(s *v1alpha1.Server) bool {
	asked := s.Annotations[v1alpha1.MaintenanceClaimAnnotation]
	return s.Spec.ServerClaimRef == nil || v1alpha1.ReleaseRecorded(s) ||
		(asked != "" && asked == s.Annotations[v1alpha1.ClaimUIDAnnotation])
}

// MaintenanceEnds says that nothing is done for a maintenance any more but to bring its machine to where it can be handed back.
func MaintenanceEnds(m *v1alpha1.ServerMaintenance, server string) bool {
	return !m.DeletionTimestamp.IsZero() || m.Annotations[v1alpha1.AbortAnnotation] != "" || m.Spec.ServerRef.Name != server
}

// GrantFacts are what windows and checks of maintenances read of a server and of the claim that holds it; claim may be nil.
func GrantFacts(s *v1alpha1.Server, claim *v1alpha1.ServerClaim) maintenance.Facts {
	f := maintenance.Facts{State: string(s.Status.State), Power: string(s.Status.PowerState), Health: HealthOf(s), Labels: s.Labels,
		Conditions: make(map[string]string, len(s.Status.Conditions))}
	for _, c := range s.Status.Conditions {
		f.Conditions[c.Type] = string(c.Status)
	}
	if claim != nil {
		f.ClaimLabels, f.ClaimAnnotations = claim.Labels, claim.Annotations
	}
	return f
}
