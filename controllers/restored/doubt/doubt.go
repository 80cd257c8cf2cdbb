// SPDX-License-Identifier: Apache-2.0

// Package doubt decides how the doubt about a server is kept after a restore of the cluster's store, and whether the store
// was restored. It is pure.
package doubt

import (
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/restored"
)

// Step is what is to be written: first into the inventory, then on the server.
type Step struct {
	// Inventory says that Doubt is to be written there; nil takes it away. Forget says that no former wipe counts any more.
	Inventory bool
	Doubt     *policyv1alpha1.RestoredDoubt
	Forget    bool
	// Server says that Annotation is to be written there; empty takes it away.
	Server     bool
	Annotation string
}

// Next is the step that brings the annotation of a server and its inventory together; inventory may be nil. Both are as the
// API server has them.
func Next(s *v1alpha1.Server, inventory *policyv1alpha1.ServerInventory, now metav1.MicroTime) Step {
	d := restored.On(inventory)
	value, marked := s.Annotations[v1alpha1.RestoredDoubtAnnotation]
	switch {
	case !marked && d == nil:
		return Step{}
	case !marked && d.InspectSince != nil: // the Server is a new one
		return Step{Server: true, Annotation: restored.Inspect}
	case !marked:
		return Step{Server: true, Annotation: restored.Doubted}
	case value == restored.Confirmed:
		return confirmed(s, d, now)
	case value == restored.Inspect:
		return inspecting(s, d)
	case d == nil || d.InspectSince != nil: // doubted, or doubted anew
		return Step{Inventory: true, Doubt: taken(s, now)}
	}
	return Step{}
}

// inspecting is the step for a server that is to be inspected. The inspection takes the inventory's part away. If none was
// begun, an older build or a restore from a backup lost that part.
func inspecting(s *v1alpha1.Server, d *policyv1alpha1.RestoredDoubt) Step {
	switch {
	case d == nil && inspected(s):
		return Step{Server: true}
	case d == nil, d.InspectSince == nil:
		return Step{Server: true, Annotation: restored.Doubted}
	}
	return Step{}
}

// inspected says that an inspection was begun for a doubt about this Server.
func inspected(s *v1alpha1.Server) bool {
	return s.Status.Lifecycle != nil && s.Status.Lifecycle.RestoredInspection != nil
}

// confirmed ends the doubt about a server that a claim or its end tells of, and about one that is left to itself. Any other is
// inspected first: that no claim holds it is what the store cannot know.
func confirmed(s *v1alpha1.Server, d *policyv1alpha1.RestoredDoubt, now metav1.MicroTime) Step {
	if Ends(s) {
		return Step{Inventory: d != nil, Forget: s.Spec.ServerClaimRef == nil, Server: true}
	}
	step := Step{Server: true, Annotation: restored.Inspect}
	if d == nil || d.InspectSince == nil {
		step.Inventory, step.Doubt = true, taken(s, now)
		step.Doubt.InspectSince = &now
	}
	return step
}

// Ends says that a user's word alone ends the doubt about a server.
func Ends(s *v1alpha1.Server) bool {
	return s.Spec.ServerClaimRef != nil || v1alpha1.ReleaseRecorded(s) || s.Status.State == v1alpha1.StateObserving
}

// Bounds of the API, in characters.
const (
	maxBy     = 253
	maxReason = 1024
)

func taken(s *v1alpha1.Server, now metav1.MicroTime) *policyv1alpha1.RestoredDoubt {
	return &policyv1alpha1.RestoredDoubt{Since: now, By: shortened(s.Annotations[v1alpha1.RestoredByAnnotation], maxBy),
		Reason: shortened(s.Annotations[v1alpha1.RestoredReasonAnnotation], maxReason)}
}

func shortened(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most])
}
