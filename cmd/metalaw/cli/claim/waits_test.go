// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// naming is a claim that names its server, and was never bound to it.
func naming(server string, more ...func(*v1alpha1.ServerClaim)) *v1alpha1.ServerClaim {
	c := aMember("web", func(c *v1alpha1.ServerClaim) {
		c.Annotations, c.Spec.ServerRef = nil, &corev1.LocalObjectReference{Name: server}
	})
	for _, change := range more {
		change(&c)
	}
	return &c
}

func condition(kind, status, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason}
}

// What a claim waits for contradicts nothing that its condition says.
func TestAClaimThatNamesItsServerIsToldWhatThatOneWaitsFor(t *testing.T) {
	reserved, frozen := aServer("a", "web"), aServer("a", "web")
	frozen.Status.Conditions = []metav1.Condition{condition(v1alpha1.ConditionWithheld, "True", v1alpha1.ReasonFrozen)}
	kept, parked := aServer("a", "theirs"), aServer("a", "")
	kept.Spec.ReclaimPolicy, kept.Annotations[v1alpha1.ReleasedClaimAnnotation] = v1alpha1.ReclaimPolicyRetain, "uid-theirs"
	parked.Status.State = v1alpha1.StateParked
	for name, c := range map[string]struct {
		claim  *v1alpha1.ServerClaim
		server v1alpha1.Server
		want   string
	}{
		"one that is reserved for it": {naming("a"), reserved, "nothing: the server a is reserved for it, and on its way"},
		"one that is reserved for it in a freeze": {naming("a"), frozen,
			"the server a, which is reserved for it: that is held back by a freeze, until those who run the fleet lift it or it runs out (Frozen)"},
		"one that keeps the data of a claim that has ended": {naming("a"), kept, "a: the claim that held it has ended, and its data is kept (reclaimPolicy " +
			"Retain) until it is given up (claimed); that passes when whoever runs the fleet acts"},
		"one that is parked": {naming("a"), parked, "a: its state is Parked and not Available (not-available); that passes when whoever runs the fleet acts"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := explain(t.Context(), aCluster(t, []client.Object{c.claim, &c.server}...), "team", "web", false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, e.WaitsFor); diff != "" {
				t.Error(diff)
			}
		})
	}
}
