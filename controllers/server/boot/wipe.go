// SPDX-License-Identifier: Apache-2.0

package boot

import (
	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/metalprobe"
)

// WipePolicy is what the policy, and the holder whose data is erased, ask of a wipe; nil where neither asks for
// anything.
func WipePolicy(w bundle.Wipe, inventory *policyv1alpha1.ServerInventory) *metalprobe.WipePolicy {
	namespace, asked := "", ""
	if inventory != nil && inventory.Custody != nil {
		asked = string(inventory.Custody.MinimumTerm)
		if holder := inventory.Custody.LastHolder; holder != nil {
			namespace = holder.Namespace
		}
	}
	term := policyv1alpha1.SanitizationTerm(bundle.Stronger(w.TermFor(namespace), asked))
	removable := ""
	if w.Removable == bundle.RemovableErase {
		removable = w.Removable
	}
	if !w.AcceptDriveErase && term == "" && len(w.Excused) == 0 && len(w.Allowed) == 0 && removable == "" {
		return nil
	}
	return &metalprobe.WipePolicy{AcceptDriveErase: w.AcceptDriveErase, MinimumTerm: term, Excused: w.Excused,
		Allowed: w.Allowed, Removable: removable}
}
