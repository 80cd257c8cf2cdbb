// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"unicode/utf8"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	doubt "github.com/metalaw/metalaw/internal/restored"
	"github.com/metalaw/metalaw/webhooks/review"
)

const (
	// restorer is the ClusterRole of the shipped manifests that holds verbRestore.
	restorer    = "metalaw-fleet-restorer"
	verbRestore = "restore"
)

// doubts says that a change puts a server in doubt, or asks for the doubt to end. A new Server may bear a doubt from a backup: that
// only holds.
func doubts(c review.Change[v1alpha1.Server]) bool {
	if c.Deleted() || c.ByManager || !doubtChanges(c) {
		return false
	}
	return !c.Created() || c.New.Annotations[v1alpha1.RestoredDoubtAnnotation] == doubt.Confirmed
}

func doubtChanges(c review.Change[v1alpha1.Server]) bool {
	was := ""
	if c.Old != nil {
		was = c.Old.Annotations[v1alpha1.RestoredDoubtAnnotation]
	}
	return c.New.Annotations[v1alpha1.RestoredDoubtAnnotation] != was || !c.Created() && doubt.Marked(c.Old) != doubt.Marked(c.New) ||
		annotationChanges(c.Old, c.New, v1alpha1.RestoredReasonAnnotation)
}

// recordDoubter writes who puts a server in doubt, or asks for the doubt to end, whatever the client wrote there.
func recordDoubter(c review.Change[v1alpha1.Server]) []review.Edit {
	who := review.NameOf(c.User)
	if c.ByManager || !doubtChanges(c) || !doubt.Marked(c.New) || c.New.Annotations[v1alpha1.RestoredByAnnotation] == who {
		return nil
	}
	return []review.Edit{{Op: "add", Path: review.AnnotationPath(v1alpha1.RestoredByAnnotation), Value: who}}
}

// checkDoubt has only the manager, and users who hold the verb restore, write or take away that a server is in doubt.
func checkDoubt(c review.Change[v1alpha1.Server], mayRestore bool, found *review.Findings) {
	path, by := review.AnnotationsPath.Key(v1alpha1.RestoredDoubtAnnotation), review.AnnotationsPath.Key(v1alpha1.RestoredByAnnotation)
	if !doubtChanges(c) {
		if !c.Created() && annotationChanges(c.Old, c.New, v1alpha1.RestoredByAnnotation) {
			found.Deny(field.Forbidden(by, "admission writes who put the server in doubt; keep it as it is stored"))
		}
		return
	}
	if doubt.Marked(c.New) && c.New.Annotations[v1alpha1.RestoredByAnnotation] != review.NameOf(c.User) {
		found.Deny(field.Forbidden(by, "admission writes who puts the server in doubt; leave it out"))
	}
	if utf8.RuneCountInString(c.New.Annotations[v1alpha1.RestoredReasonAnnotation]) > maxReason {
		err := field.TooLong(review.AnnotationsPath.Key(v1alpha1.RestoredReasonAnnotation), "", maxReason)
		err.Detail = fmt.Sprintf("may not be longer than %d characters", maxReason)
		found.Deny(err)
	}
	if !doubts(c) {
		return
	}
	if !mayRestore {
		found.Deny(field.Forbidden(path, fmt.Sprintf("user %q may not say whether a server is in doubt after a restore. "+
			"That takes the verb %s on fleetcontrols.%s, which ClusterRole %s gives", c.User.Username, verbRestore,
			policyv1alpha1.GroupVersion.Group, restorer)))
		return
	}
	switch value := c.New.Annotations[v1alpha1.RestoredDoubtAnnotation]; {
	case !doubt.Marked(c.New):
		found.Deny(field.Forbidden(path, "only the manager takes the mark away, once the doubt has ended. "+
			"To end it, compare the machine, then: metalaw restored --confirm "+c.New.Name))
	case value == doubt.Doubted, value == doubt.Confirmed:
	case c.Old != nil && c.Old.Annotations[v1alpha1.RestoredDoubtAnnotation] == value:
	default:
		found.Deny(field.NotSupported(path, value, []string{doubt.Doubted, doubt.Confirmed}))
	}
}

// mayRestore asks for the verb where a change takes it.
func (l *serverRules) mayRestore(ctx context.Context, c review.Change[v1alpha1.Server]) (bool, error) {
	if !doubts(c) {
		return false, nil
	}
	return l.may(ctx, c.User, authorizationv1.ResourceAttributes{Verb: verbRestore, Group: policyv1alpha1.GroupVersion.Group,
		Resource: "fleetcontrols", Name: policyv1alpha1.FleetControlName})
}

// checkInventoryDoubt keeps a doubt where it outlives the Server: only the manager ends it.
func checkInventoryDoubt(c review.Change[policyv1alpha1.ServerInventory], found *review.Findings) {
	if c.Created() || c.ByManager || doubt.On(c.Old) == nil {
		return
	}
	agreed := c.Old.Annotations[v1alpha1.DeleteDataAnnotation] == "true"
	kept := !c.Deleted() && doubt.On(c.New) != nil && doubt.On(c.Old).InspectSince.Equal(doubt.On(c.New).InspectSince)
	if kept || c.Deleted() && agreed {
		return
	}
	found.Deny(field.Forbidden(field.NewPath("custody", "doubt"), fmt.Sprintf(
		"machine %s is in doubt since the cluster's store was restored. Only the manager ends that, once a user has compared: "+
			"metalaw restored --confirm NAME, with the name of its Server", c.Old.Spec.SystemUUID)))
}
