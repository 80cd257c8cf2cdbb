// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"fmt"
	"slices"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// mayNotSanitize says why the disks of a server are not erased for a user who answers for their data; empty where they are.
func (d *decision) mayNotSanitize() string {
	s := d.server
	switch ref := s.Spec.ServerClaimRef; {
	case d.Holder != "":
		return d.holdsWords()
	case ref != nil:
		return fmt.Sprintf("it names the claim %s/%s; delete the claim, or clear the reference", ref.Namespace, ref.Name)
	case !slices.Contains(s.Status.Lifecycle.Marks, policies.MarkDirty):
		return "it is not marked Dirty, so that nothing on it is to be erased"
	}
	return ""
}

// admitSanitize takes in the wish to have the disks erased. The release that it takes is recorded once the wish is stored.
func (d *decision) admitSanitize() {
	d.beginOperation(v1alpha1.OperationSanitize)
	if why := d.mayNotSanitize(); why != "" {
		d.dropRequest()
		d.finish(v1alpha1.OperationRefused, why)
	}
}

// beginSanitize records that nobody holds the server, in the write that takes the request away. A rule of the policy moves on it.
func (d *decision) beginSanitize() {
	if why := d.mayNotSanitize(); why != "" {
		d.finish(v1alpha1.OperationRefused, why)
		return
	}
	letGo(d.server, d.Now, d.NewID)
}

// foundOnly says that the server is marked Dirty for data that was found on its disks, and that no claim is known to
// have left it.
func foundOnly(s *v1alpha1.Server, inv *policyv1alpha1.ServerInventory) bool {
	return inv != nil && inv.Custody != nil && inv.Custody.DataFound != nil && inv.Custody.LastHolder == nil &&
		s.Spec.ServerClaimRef == nil && s.Annotations[v1alpha1.ClaimUIDAnnotation] == ""
}
