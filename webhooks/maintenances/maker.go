// SPDX-License-Identifier: Apache-2.0

package maintenances

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/rights"
	"github.com/metalaw/metalaw/webhooks/review"
)

// makerOf is the value that v1alpha1.MakerAnnotation is to have after a change, and whether it is to be there. An error is a maker
// that is too large to keep.
func makerOf(c review.Change[v1alpha1.ServerMaintenance]) (value string, set bool, err error) {
	if madeAnew(c) {
		value, err = rights.MakerOf(c.User).Annotation()
		return value, err == nil, err
	}
	if !c.Created() {
		value, set = c.Old.Annotations[v1alpha1.MakerAnnotation]
	}
	return value, set, nil
}

// Normalize writes who makes a maintenance, whatever the client wrote there. Where finalize says so it also writes the
// manager's finalizer, which saves the manager a write.
func Normalize(finalize bool) func(context.Context, review.Change[v1alpha1.ServerMaintenance]) ([]review.Edit, []string) {
	return func(_ context.Context, c review.Change[v1alpha1.ServerMaintenance]) (edits []review.Edit, warnings []string) {
		if c.ByManager {
			return nil, nil
		}
		edits = writeMaker(c)
		if finalize && c.Created() && !slices.Contains(c.New.Finalizers, v1alpha1.FinalizerServerMaintenance) {
			edits = append(edits, review.Edit{Op: "add", Path: "/metadata/finalizers",
				Value: append(slices.Clone(c.New.Finalizers), v1alpha1.FinalizerServerMaintenance)})
		}
		return edits, nil
	}
}

func writeMaker(c review.Change[v1alpha1.ServerMaintenance]) []review.Edit {
	want, set, err := makerOf(c)
	is, written := c.New.Annotations[v1alpha1.MakerAnnotation]
	path := review.AnnotationPath(v1alpha1.MakerAnnotation)
	switch {
	case err != nil || set == written && want == is: // the validation refuses what cannot be kept
		return nil
	case !set:
		return []review.Edit{{Op: "remove", Path: path}}
	case c.New.Annotations == nil:
		return []review.Edit{{Op: "add", Path: "/metadata/annotations", Value: map[string]string{v1alpha1.MakerAnnotation: want}}}
	}
	return []review.Edit{{Op: "add", Path: path, Value: want}}
}

// checkMaker holds against the rules what admission wrote itself: another webhook may have changed it since.
func checkMaker(c review.Change[v1alpha1.ServerMaintenance], found *review.Findings) {
	want, set, err := makerOf(c)
	is, written := c.New.Annotations[v1alpha1.MakerAnnotation]
	path := review.AnnotationsPath.Key(v1alpha1.MakerAnnotation)
	switch {
	case err != nil:
		found.Deny(field.Forbidden(path, err.Error()+"; the rights could not be asked for again when the server is handed over. "+
			"Make the maintenance as a user, or as a service account, of whom authentication says less"))
	case set != written || want != is:
		found.Deny(field.Forbidden(path, "admission writes who made the maintenance; leave it out"))
	}
}
