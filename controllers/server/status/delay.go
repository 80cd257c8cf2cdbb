// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// WorthTelling is how long an effect may be pending before the condition says what it waits for. What passes sooner is
// not worth a write.
const WorthTelling = 15 * time.Second

// Waits says that a status differs from the stored one in nothing that is worth a write of its own: it may go with the
// next write.
func Waits(before, after *v1alpha1.Server) bool {
	return equality.Semantic.DeepEqual(before.Status, promptly(before, after))
}

// promptly is a status with what waits as it was: the generation that was observed, the hardware before the first decision,
// the credential of a probe, whose token stands in the ignition, and what that inspection finds: nothing boots or is
// erased by it before the move that ends it. Budgets count the credential of a wipe.
func promptly(before, after *v1alpha1.Server) v1alpha1.ServerStatus {
	s, was := *after.Status.DeepCopy(), before.Status
	if s.Lifecycle == nil && was.Lifecycle == nil {
		now := s
		s = *was.DeepCopy()
		s.State, s.Conditions, s.Operation = now.State, now.Conditions, now.Operation
	}
	s.ObservedGeneration = was.ObservedGeneration
	for i := range s.Conditions {
		if former := meta.FindStatusCondition(was.Conditions, s.Conditions[i].Type); former != nil {
			s.Conditions[i].ObservedGeneration = former.ObservedGeneration
		}
	}
	if l := s.Lifecycle; l != nil && was.Lifecycle != nil && l.Credential != nil && l.Credential.Purpose == v1alpha1.ProbePurposeProbe {
		l.Credential = was.Lifecycle.Credential
		s.Processors, s.Storages = was.Processors, was.Storages
		if len(was.NetworkInterfaces) > 0 { // the first ones are stored before a boot, for the boot service
			s.NetworkInterfaces = was.NetworkInterfaces
		}
	}
	return s
}

// awaitsFirstReading says that this process has not heard from the BMC yet (or not since it is reached in another way), and that it is
// being asked. Where a manager of a large fleet starts, that takes minutes.
func (r *record) awaitsFirstReading() bool {
	return !r.Reading.NoTarget && (!r.Reading.Tried || r.Reading.Never && r.Reading.Crowded)
}

// pendingFor is how long the present entry has lasted, or how long ago the BMC was last asked for something, or since when a
// reading is awaited from a BMC that answers. What the BMC is only about to be asked for has just begun.
func (r *record) pendingFor() time.Duration {
	if len(r.Outcome.Requests) > 0 {
		return 0
	}
	since := r.s.Status.Lifecycle.EnteredAt.Time
	for _, at := range []time.Time{r.Since.LastJob, r.Since.Reading} {
		if at.After(since) {
			since = at
		}
	}
	return r.Now.Sub(since)
}

// heldBriefly says that a move is put off for less than is worth telling, so that what was told before stands.
func (r *record) heldBriefly() bool {
	left := WorthTelling - r.Now.Sub(r.Since.Postponed)
	if !r.Gated.Postponed || left <= 0 || r.saysNothingYet() {
		return false
	}
	r.wakeIn(left)
	return true
}
