// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestWhatCountsAgainstACanary(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	halted := func(at time.Time) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionPolicyHalted, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}
	}
	failed := func(revision string, at time.Time) *v1alpha1.LifecycleStatus {
		return &v1alpha1.LifecycleStatus{Revision: "other", History: []v1alpha1.LifecycleMove{
			{To: v1alpha1.StateError, Revision: revision, At: metav1.NewMicroTime(at)}, {To: v1alpha1.StateAvailable, Revision: revision, At: metav1.NewMicroTime(at)}}}
	}
	canary := &v1alpha1.LifecycleStatus{Revision: "canary"}
	for name, c := range map[string]struct {
		status          v1alpha1.ServerStatus
		halts, failures int
	}{
		"a server without a lifecycle":              {v1alpha1.ServerStatus{Conditions: halted(began)}, 0, 0},
		"a server that is halted under it":          {v1alpha1.ServerStatus{Lifecycle: canary, Conditions: halted(began.Add(time.Second))}, 1, 0},
		"one that was halted when it began":         {v1alpha1.ServerStatus{Lifecycle: canary, Conditions: halted(began.Add(-time.Second))}, 0, 0},
		"one that is halted under another revision": {v1alpha1.ServerStatus{Lifecycle: failed("other", began), Conditions: halted(began)}, 0, 0},
		"one that was halted under it and is under another revision since": {v1alpha1.ServerStatus{Lifecycle: &v1alpha1.LifecycleStatus{Revision: "other",
			Halts: []v1alpha1.LifecycleHalt{{Revision: "canary", At: metav1.NewMicroTime(began.Add(time.Second))}, {Revision: "other", At: metav1.NewMicroTime(began)}}}}, 1, 0},
		"one that was halted under it before it began": {v1alpha1.ServerStatus{Lifecycle: &v1alpha1.LifecycleStatus{Revision: "canary",
			Halts: []v1alpha1.LifecycleHalt{{Revision: "canary", At: metav1.NewMicroTime(began.Add(-time.Second))}}}}, 0, 0},
		"one that it moved to Error, and that has left":  {v1alpha1.ServerStatus{Lifecycle: failed("canary", began.Add(time.Minute))}, 0, 1},
		"one that another revision moved to Error":       {v1alpha1.ServerStatus{Lifecycle: failed("other", began.Add(time.Minute))}, 0, 0},
		"one that it moved to Error in its former scope": {v1alpha1.ServerStatus{Lifecycle: failed("canary", began.Add(-time.Minute))}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			count := &troubled{since: began, halted: map[types.UID]bool{}, failed: map[types.UID]bool{}}
			for range 2 { // each server counts once
				count.see("canary", &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{UID: "1"}, Status: c.status})
			}
			count.see("canary", &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{UID: "1"}}) // and also when it has recovered
			if len(count.halted) != c.halts || len(count.failed) != c.failures {
				t.Errorf("%d halts, %d errors", len(count.halted), len(count.failed))
			}
		})
	}
}
