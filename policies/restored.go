// SPDX-License-Identifier: Apache-2.0

package policies

import (
	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/restored"
)

// doubt is how far the doubt about the server has come since the cluster's store was restored.
func (o Observation) doubt() restored.Phase { return restored.Of(o.Server, o.Inventory) }

// inDoubt takes out of the facts what may be older than the disks: consent, attestations and a waiver of the wipe. A user who
// confirmed a server that no claim holds consents to manage its machine while that is off.
func (o Observation) inDoubt(f *Facts) {
	phase := o.doubt()
	if phase == restored.None {
		return
	}
	f.Operation.Consented = phase == restored.Inspection && f.BMC.Identity == IdentitySame && f.BMC.Power == "Off"
	f.Wipe.Attested = false
	if f.Policy.Sanitization == bundle.SanitizationNone {
		f.Policy.Sanitization = bundle.SanitizationRequired
	}
}

// acceptsInDoubt says that a disk holds nothing by what was read now: a former wipe and the policy's offer.accepts count for nothing.
func (o Observation) acceptsInDoubt(d *policyv1alpha1.BlockDevice) bool {
	w, l := o.Inventory.Wipe, o.Server.Status.Lifecycle
	return d.Content == policyv1alpha1.ContentBlank || w != nil && w.Entry == l.Entry && o.wiped(d)
}
