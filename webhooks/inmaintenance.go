// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

// grantRecord are the annotations of a Server by which a maintenance of the manager's own is told from another program's. A forged
// one would have a machine powered or booted without the consent of its holder.
var grantRecord = []string{v1alpha1.MaintenanceUIDAnnotation, v1alpha1.MaintenanceClaimAnnotation}

// checkDeletedInMaintenance refuses to delete a server that a maintenance has, unless a user says that its end is not waited for.
func checkDeletedInMaintenance(s *v1alpha1.Server, found *review.Findings) {
	if s.Annotations[v1alpha1.OperationAnnotation] == v1alpha1.OperationAllowInProgressDelete {
		return
	}
	remedy := fmt.Sprintf("; end the maintenance first, or set annotation %s: %s",
		v1alpha1.OperationAnnotation, v1alpha1.OperationAllowInProgressDelete)
	ref := s.Spec.ServerMaintenanceRef
	switch {
	case s.Status.State == v1alpha1.StateMaintenance:
		found.Deny(field.Forbidden(nil, fmt.Sprintf("cannot delete Server %s in state %s", s.Name, v1alpha1.StateMaintenance)+remedy))
	case ref != nil && s.Annotations[v1alpha1.MaintenanceUIDAnnotation] != "":
		found.Deny(field.Forbidden(nil, fmt.Sprintf(
			"cannot delete Server %s, which ServerMaintenance %s/%s has", s.Name, ref.Namespace, ref.Name)+remedy))
	}
}

// handoverChanges says that a change sets, clears or replaces the reference to a maintenance.
func handoverChanges(c review.Change[v1alpha1.Server]) bool {
	return !c.Created() && !equality.Semantic.DeepEqual(c.Old.Spec.ServerMaintenanceRef, c.New.Spec.ServerMaintenanceRef)
}

// dropGrantRecord takes the record away with the reference: one that another user writes is not the manager's. A backup brings no
// consent of a claim; the UID stays, so that the manager clears a reference to a maintenance that is gone. What the manager booted for the
// maintenance goes as well: the boot service would serve it to whatever comes next.
func dropGrantRecord(c review.Change[v1alpha1.Server]) (edits []review.Edit) {
	if c.ByManager || !c.Created() && !handoverChanges(c) {
		return nil
	}
	for _, name := range grantRecord {
		if _, set := c.New.Annotations[name]; set && (handoverChanges(c) || name == v1alpha1.MaintenanceClaimAnnotation) {
			edits = append(edits, review.Edit{Op: "remove", Path: review.AnnotationPath(name)})
		}
	}
	if boot := c.New.Spec.MaintenanceBootConfigurationRef; boot != nil && handoverChanges(c) &&
		c.Old.Annotations[v1alpha1.MaintenanceUIDAnnotation] != "" && equality.Semantic.DeepEqual(boot, c.Old.Spec.MaintenanceBootConfigurationRef) {
		edits = append(edits, review.Edit{Op: "remove", Path: "/spec/maintenanceBootConfigurationRef"})
	}
	return edits
}

// checkGrantRecord keeps others off the record of a grant. It may go where the reference goes, or is gone.
func checkGrantRecord(c review.Change[v1alpha1.Server], found *review.Findings) {
	for _, name := range grantRecord {
		is, set := c.New.Annotations[name]
		path := review.AnnotationsPath.Key(name)
		if c.Created() {
			if set && name == v1alpha1.MaintenanceClaimAnnotation {
				found.Deny(field.Forbidden(path, "the consent of a claim cannot come with a new server; leave it out"))
			}
			continue
		}
		was, had := c.Old.Annotations[name]
		gone := c.New.Spec.ServerMaintenanceRef == nil
		switch {
		case !set && (gone || handoverChanges(c)):
		case set != had || is != was:
			found.Deny(field.Forbidden(path, "only the manager changes it; to end the maintenance delete it, "+
				"or clear spec.serverMaintenanceRef where nothing ends it"))
		case set && handoverChanges(c) && !gone:
			found.Deny(field.Forbidden(path, "it belongs to the reference that the manager wrote; take it away with that"))
		}
	}
}
