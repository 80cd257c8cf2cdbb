// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
)

// reasonAsking: the device was asked and has not answered yet; it is never recorded.
const reasonAsking = "Asking"

// record brings the conditions up to date. While the device is being asked nothing is written: what is recorded stands until the
// answer is there.
func (v *scope) record(verdict verdict, o loop.Outcome) {
	if !o.Settled() {
		if o.Progress.Err != nil || o.Progress.Reason == reasonAsking {
			return
		}
		verdict.reason, verdict.message = o.Progress.Reason, o.Progress.Message
	}
	status := &v.endpoint.Status
	status.ObservedGeneration = v.endpoint.Generation
	v.set(v1alpha1.ConditionMatched, verdict.matched, verdict.matchReason, verdict.matchMessage)
	v.set(v1alpha1.ConditionReady, verdict.reason == v1alpha1.ReasonBMCCreated, verdict.reason, verdict.message)
	// A manager that restarts finds the time of the last refusal here. The condition's own time would stand still while the
	// accounts are refused again and again, and each restart would offer them once more.
	if !v.refusedAt.IsZero() {
		ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
		ready.LastTransitionTime = metav1.NewTime(v.refusedAt.Truncate(time.Second)) // as the API stores it
	}
}

func (v *scope) set(kind string, holds bool, reason, message string) {
	state := metav1.ConditionFalse
	if holds {
		state = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&v.endpoint.Status.Conditions, metav1.Condition{
		Type: kind, Status: state, Reason: reason, Message: message, ObservedGeneration: v.endpoint.Generation,
	})
}
