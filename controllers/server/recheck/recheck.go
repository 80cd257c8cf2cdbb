// SPDX-License-Identifier: Apache-2.0

// Package recheck says whether the stored objects are still as a decision took them to be. A shell reads them past the cache
// right before it does what cannot be undone.
package recheck

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/metalaw/metalaw/api/v1alpha1"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/internal/restored"
	"github.com/metalaw/metalaw/policies"
)

// Server names the first thing in which the stored server is not as the decision took it to be; empty where there is
// nothing.
func Server(was, now *v1alpha1.Server) string {
	for _, c := range []struct {
		what    string
		differs bool
	}{
		{"the object", now.UID != was.UID},
		{"its deletion", now.DeletionTimestamp != nil},
		{"the state", now.Status.State != was.Status.State || now.Status.Lifecycle == nil ||
			now.Status.Lifecycle.Entry != was.Status.Lifecycle.Entry},
		{"the ignore annotation", v1alpha1.Ignored(now)},
		{"the doubt after a restore", annotated(now, was, v1alpha1.RestoredDoubtAnnotation) || restored.Marked(now) != restored.Marked(was)},
		{"the claim reference", !equality.Semantic.DeepEqual(now.Spec.ServerClaimRef, was.Spec.ServerClaimRef)},
		{"the maintenance reference", !equality.Semantic.DeepEqual(now.Spec.ServerMaintenanceRef, was.Spec.ServerMaintenanceRef)},
		{"the grant of the maintenance", annotated(now, was, v1alpha1.MaintenanceUIDAnnotation) ||
			annotated(now, was, v1alpha1.MaintenanceClaimAnnotation)},
		{"the holder", annotated(now, was, v1alpha1.ClaimUIDAnnotation)},
		{"the release record", annotated(now, was, v1alpha1.ReleasedClaimAnnotation)},
		{"the consent", annotated(now, was, v1alpha1.ConsentAnnotation) && !(managed(was) && managed(now))},
		{"the reclaim policy", now.Spec.ReclaimPolicy != was.Spec.ReclaimPolicy},
		{"the system UUID", now.Spec.SystemUUID != was.Spec.SystemUUID},
		{"its BMC", now.Spec.SystemURI != was.Spec.SystemURI || !equality.Semantic.DeepEqual(now.Spec.BMCRef, was.Spec.BMCRef) ||
			!equality.Semantic.DeepEqual(now.Spec.BMC, was.Spec.BMC)},
	} {
		if c.differs {
			return c.what
		}
	}
	return ""
}

// managed says that a machine is ours to stop, so that a consent to that makes no difference; it is used up then.
func managed(s *v1alpha1.Server) bool {
	return s.Status.Lifecycle != nil && slices.Contains(s.Status.Lifecycle.Marks, policies.MarkManaged)
}

// annotated says that an annotation is not on both alike.
func annotated(a, b *v1alpha1.Server, name string) bool {
	return a.Annotations[name] != b.Annotations[name]
}

// CannotErase says that the stored status of a server proves that no erase is told of: it holds no data, and the only token that
// the registry accepts is that of the agent which inspects.
func CannotErase(s *v1alpha1.Server) bool {
	l := s.Status.Lifecycle
	return l != nil && l.Credential != nil && l.Credential.Entry == l.Entry && l.Credential.Purpose == v1alpha1.ProbePurposeProbe &&
		!slices.Contains(l.Marks, policies.MarkDirty)
}

// ClaimDiffers says that the stored claim of a server is not as the decision took it to be. Either is nil where there is none.
func ClaimDiffers(was, now *v1alpha1.ServerClaim, server *v1alpha1.Server) bool {
	switch {
	case was == nil: // that the cache did not show a claim is no evidence that there is none
		return now != nil
	case now == nil: // its end may have been recorded, and decided on; that it goes then is no news
		return server.Annotations[v1alpha1.ReleasedClaimAnnotation] != string(was.UID)
	}
	return now.UID != was.UID || now.Spec.Power != was.Spec.Power || now.DeletionTimestamp.IsZero() != was.DeletionTimestamp.IsZero() ||
		!equality.Semantic.DeepEqual(now.Spec.ServerRef, was.Spec.ServerRef) || v1alpha1.Ignored(now) != v1alpha1.Ignored(was)
}

// MaintenanceDiffers says that the stored maintenance, which is nil where it is gone, ends or asks the server for something else
// than what was decided on. It is the consent to what is done.
func MaintenanceDiffers(was, now *v1alpha1.ServerMaintenance, server string) bool {
	return now == nil || now.UID != was.UID || v1alpha1.Ignored(now) || !equality.Semantic.DeepEqual(now.Spec, was.Spec) ||
		boots.ForMaintenance(now, server) != boots.ForMaintenance(was, server)
}
