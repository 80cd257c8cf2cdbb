// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// mayWait says that what this reconcile records need not be stored at once.
func (v *scope) mayWait() bool { return !v.recorded.Settled || v.facts.Claim.Binding }

// defers is how long a status may wait for the next write. While something else is about to be stored, that a generation was observed, and the
// credential of a probe whose machine cannot boot it yet, are stored with that. What is not stored by then, or after a
// while, is found and stored by whoever looks next: the token stands in the ignition. The credential of a wipe is stored at
// once, because budgets count it.
func (s *subject) defers(before, after *v1alpha1.Server) time.Duration {
	if !equality.Semantic.DeepEqual(before.Status, withoutDeferrable(before, after).Status) {
		return 0
	}
	l := after.Status.Lifecycle
	if l == nil {
		return 0
	}
	now := s.Now()
	id := fmt.Sprintf("%d/%d", l.Entry, after.Generation)
	return max(0, worthTelling-now.Sub(s.memory.of(after.Name).firstSeen(deferredRecord, id, now)))
}

// withoutDeferrable is a server with everything as it was before that may be stored later.
func withoutDeferrable(before, after *v1alpha1.Server) *v1alpha1.Server {
	s := after.DeepCopy()
	s.Status.ObservedGeneration = before.Status.ObservedGeneration
	for i := range s.Status.Conditions {
		if was := meta.FindStatusCondition(before.Status.Conditions, s.Status.Conditions[i].Type); was != nil {
			s.Status.Conditions[i].ObservedGeneration = was.ObservedGeneration
		}
	}
	was, now := before.Status.Lifecycle, s.Status.Lifecycle
	if was != nil && now != nil && now.Credential != nil && now.Credential.Purpose == v1alpha1.ProbePurposeProbe {
		now.Credential = was.Credential
	}
	return s
}
