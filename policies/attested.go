// SPDX-License-Identifier: Apache-2.0

package policies

import (
	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// AllAttested says that the disks of a machine are known, and that a person answers for each of them; inv may be nil.
func AllAttested(inv *policyv1alpha1.ServerInventory) bool {
	return inv != nil && inv.Custody != nil && len(inv.Custody.Disks) > 0 && len(inv.Custody.Unattested(inv.Custody.Disks)) == 0
}

// attested says that no wipe is needed for the data of the last holder: a person answers for each disk, and the holder was released,
// or none is known.
func (o Observation) attested() bool {
	if !AllAttested(o.Inventory) {
		return false
	}
	s := o.Server
	released, _ := Released(s, o.Settings.ReleaseGrace, o.CountedNow)
	unheld := s.Spec.ServerClaimRef == nil && s.Annotations[v1alpha1.ClaimUIDAnnotation] == "" && o.Inventory.Custody.LastHolder == nil
	return released || unheld
}

// HoldsNothing says that a decommissioned server goes without a wipe: a person answers for each disk of its machine.
func HoldsNothing(s *v1alpha1.Server, inv *policyv1alpha1.ServerInventory) bool {
	return s.Status.State == v1alpha1.StateDecommissioned && s.Spec.ServerClaimRef == nil && AllAttested(inv)
}
