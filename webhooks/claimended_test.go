// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

func TestWhoEndsAClaimIsNotedOnItsServer(t *testing.T) {
	const was = "u0 somebody"
	for name, c := range map[string]struct {
		change func(*review.Change[v1alpha1.ServerClaim])
		holder string
		want   string
	}{
		"the user of the deletion": {func(*review.Change[v1alpha1.ServerClaim]) {}, "u1", "u1 jane"},
		"nobody by a dry run":      {func(c *review.Change[v1alpha1.ServerClaim]) { c.DryRun = true }, "u1", was},
		"nobody where it is being deleted already": {func(c *review.Change[v1alpha1.ServerClaim]) {
			c.Old.DeletionTimestamp = &metav1.Time{}
			*c.Old.DeletionTimestamp = metav1.Now()
		}, "u1", was},
		"nobody where another claim holds the server": {func(*review.Change[v1alpha1.ServerClaim]) {}, "u2", was},
		"nobody where there is no server":             {func(c *review.Change[v1alpha1.ServerClaim]) { c.Old.Spec.ServerRef.Name = "gone" }, "u1", was},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			server := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "s1", Annotations: map[string]string{
				v1alpha1.ClaimUIDAnnotation: c.holder, v1alpha1.ClaimEndedByAnnotation: was,
			}}}
			k := fake.NewClientBuilder().WithScheme(scheme).WithObjects(server).Build()
			claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "c", UID: "u1"}}
			claim.Spec.ServerRef = &corev1.LocalObjectReference{Name: "s1"}
			change := review.Change[v1alpha1.ServerClaim]{Old: claim, User: authenticationv1.UserInfo{Username: "jane"}}
			c.change(&change)
			rules := &claimRules{lookup: &lookup{cache: k, reader: k, writer: k}}
			rules.noteEnd(context.Background(), change)
			var stored v1alpha1.Server
			if err := k.Get(t.Context(), client.ObjectKey{Name: "s1"}, &stored); err != nil {
				t.Fatal(err)
			}
			if got := stored.Annotations[v1alpha1.ClaimEndedByAnnotation]; got != c.want {
				t.Errorf("noted %q, want %q", got, c.want)
			}
		})
	}
}
