// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/webhooks/review"
)

const (
	inventoryHoldsData = "its ServerInventory says that it was not wiped since its last holder (mark Dirty)"
	deleteDataRemedy   = "to let it go all the same, set annotation " + v1alpha1.DeleteDataAnnotation + `: "true" first`
)

// guarded are the annotations by which safety is kept beyond the life of a status. Only the manager changes them: a
// forged release record would cause a wipe, a lost holder would forget one.
var guarded = []string{v1alpha1.BindingAnnotation, v1alpha1.ClaimEndedByAnnotation, v1alpha1.ClaimUIDAnnotation, v1alpha1.ReleasedAtAnnotation,
	v1alpha1.ReleasedCountedAnnotation, v1alpha1.ReleasedClaimAnnotation, v1alpha1.ReleasedSpecAnnotation,
	v1alpha1.DecommissionAnnotation, v1alpha1.PreParkStateAnnotation, v1alpha1.ParkRequestedAnnotation}

// releaseRecord begins the name of each annotation of a release record.
const releaseRecord = "policy.metalaw.dev/released-"

// holdsData says in words why a server is taken to hold somebody's data; empty where it is not. inventory may be nil.
func holdsData(s *v1alpha1.Server, inventory *policyv1alpha1.ServerInventory) string {
	switch {
	case policies.HoldsNothing(s, inventory): // it is out of service, and a person answers for each disk
	case s.Spec.ServerClaimRef != nil:
		return "it is held by a claim (spec.serverClaimRef)"
	case isDirty(s):
		return "it was not wiped since its last holder (mark Dirty)"
	case inventory != nil && inventory.Custody != nil && slices.Contains(inventory.Custody.Marks, policies.MarkDirty):
		return inventoryHoldsData
	}
	return ""
}

// mayLoseData says that somebody has said so on the object.
func mayLoseData(s *v1alpha1.Server) bool {
	return s.Annotations[v1alpha1.DeleteDataAnnotation] == "true"
}

// checkDeletion: a server that holds data goes only when its annotation says so.
func checkDeletion(s *v1alpha1.Server, data string, found *review.Findings) {
	switch {
	case data == "":
	case mayLoseData(s):
		found.Warn("nothing erases the disks of machine %s: %s, and its ServerInventory goes on saying so", s.Spec.SystemUUID, data)
	default:
		found.Deny(field.Forbidden(field.NewPath("metadata", "annotations").Key(v1alpha1.DeleteDataAnnotation),
			fmt.Sprintf("the server holds data: %s; %s", data, deleteDataRemedy)))
	}
}

func losesFinalizer(c review.Change[v1alpha1.Server]) bool {
	return !c.Created() && !c.Deleted() && slices.Contains(c.Old.Finalizers, v1alpha1.FinalizerServer) &&
		!slices.Contains(c.New.Finalizers, v1alpha1.FinalizerServer)
}

// checkAnnotations keeps others off the guarded annotations. A backup may bring a server back with the UID of its holder,
// which only guards; a release record it may not bring, because that would cause a wipe.
func checkAnnotations(c review.Change[v1alpha1.Server], found *review.Findings) {
	path := field.NewPath("metadata", "annotations")
	for _, name := range guarded {
		is, set := c.New.Annotations[name]
		if c.Created() {
			if set && strings.HasPrefix(name, releaseRecord) {
				found.Deny(field.Forbidden(path.Key(name), fmt.Sprintf(
					"a release record leads to a wipe and cannot come with a new server; "+
						"leave it out, and where the claim has ended set annotation %s: %s afterwards",
					v1alpha1.OperationAnnotation, v1alpha1.OperationRelease)))
			}
			continue
		}
		was, had := c.Old.Annotations[name]
		if set != had || is != was {
			found.Deny(field.Forbidden(path.Key(name), "only the manager changes it; "+remedyFor(name)))
		}
	}
}

func remedyFor(annotation string) string {
	switch annotation {
	case v1alpha1.ReleasedClaimAnnotation, v1alpha1.ReleasedAtAnnotation, v1alpha1.ReleasedCountedAnnotation:
		return fmt.Sprintf("delete the claim, or where it is gone already set annotation %s: %s",
			v1alpha1.OperationAnnotation, v1alpha1.OperationRelease)
	case v1alpha1.DecommissionAnnotation:
		return fmt.Sprintf("set annotation %s: %s or %s", v1alpha1.OperationAnnotation,
			v1alpha1.OperationDecommission, v1alpha1.OperationRecommission)
	case v1alpha1.PreParkStateAnnotation, v1alpha1.ParkRequestedAnnotation:
		return fmt.Sprintf("set annotation %s: %s or %s", v1alpha1.OperationAnnotation,
			v1alpha1.OperationPark, v1alpha1.OperationUnpark)
	}
	return "keep it as it is stored"
}
