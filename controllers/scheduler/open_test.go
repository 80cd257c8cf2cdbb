// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

func TestWhichClaimsAreOpen(t *testing.T) {
	bound := func(conditions ...metav1.Condition) func(*v1alpha1.ServerClaim) {
		return func(c *v1alpha1.ServerClaim) {
			c.Status.Phase, c.Status.Conditions = v1alpha1.PhaseBound, conditions
		}
	}
	yes := metav1.Condition{Type: v1alpha1.ConditionBound, Status: metav1.ConditionTrue}
	ready := func(reason string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionReady, Reason: reason}
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ServerClaim)
		want   bool
	}{
		"one that is new":                                     {func(*v1alpha1.ServerClaim) {}, true},
		"one that has no finalizer yet is not":                {func(c *v1alpha1.ServerClaim) { c.Finalizers = nil }, false},
		"one that is bound is not":                            {bound(yes, ready(v1alpha1.ReasonRunning)), false},
		"one that another operator calls bound":               {bound(), true},
		"one that is bound and whose UID is still to be kept": {bound(yes, ready(v1alpha1.ReasonAdopting)), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := policies.Open(aClaim("web", tc.change)); got != tc.want {
				t.Errorf("open: %t, want %t", got, tc.want)
			}
		})
	}
}
