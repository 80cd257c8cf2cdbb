// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

const (
	needed    = v1alpha1.MaintenanceNeededLabel
	approved  = v1alpha1.MaintenanceApprovedLabel
	requested = v1alpha1.MaintenanceRequestedLabel
)

type labels = map[string]string

func TestTheCloudController(t *testing.T) {
	for name, c := range map[string]struct {
		node, claim labels
		maintenance labels // of the one that exists; nil where none does
		finalizer   bool
		deleted     bool
		want        string
	}{
		"does nothing for a Node that nobody asks anything of": {want: "node map[] [], claim map[], no maintenance"},
		"mirrors that a maintenance is needed": {claim: labels{needed: "true"},
			want: "node map[" + needed + ":true] [], claim map[" + needed + ":true], no maintenance"},
		"takes any other value off the Node": {node: labels{needed: "yes"}, claim: labels{needed: "yes"},
			want: "node map[] [], claim map[" + needed + ":yes], no maintenance"},
		"asks for a maintenance": {node: labels{requested: "true"},
			want: "node map[" + requested + ":true] [" + Finalizer + "], claim map[], OwnerApproval 100 server"},
		"leaves one of that name alone": {node: labels{requested: "true"}, maintenance: labels{},
			want: "node map[" + requested + ":true] [" + Finalizer + "], claim map[],  0 "},
		"takes its request back": {finalizer: true, maintenance: labels{managedByLabel: ManagedBy},
			want: "node map[] [], claim map[], no maintenance"},
		"takes no other back": {finalizer: true, maintenance: labels{}, want: "node map[] [], claim map[],  0 "},
		"takes its request back for a Node that goes": {node: labels{requested: "true"}, finalizer: true, deleted: true,
			maintenance: labels{managedByLabel: ManagedBy}, want: "no node, claim map[], no maintenance"},
		"hands the approval on": {node: labels{needed: "true", approved: "true"}, claim: labels{needed: "true"},
			want: "node map[" + approved + ":true " + needed + ":true] [], claim map[" + approved + ":true " + needed + ":true], no maintenance"},
		"hands on none that nobody needs": {node: labels{approved: "true"}, want: "node map[" + approved + ":true] [], claim map[], no maintenance"},
		"removes an approval by hand": {node: labels{needed: "true"}, claim: labels{needed: "true", approved: "true"},
			want: "node map[" + needed + ":true] [], claim map[" + needed + ":true], no maintenance"},
		"leaves one of another value": {claim: labels{approved: "me"}, want: "node map[] [], claim map[" + approved + ":me], no maintenance"},
	} {
		t.Run(name, func(t *testing.T) {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: c.node}}
			n.Spec.ProviderID = "metal://ns/claim"
			if c.finalizer {
				n.Finalizers = []string{Finalizer}
			}
			claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", Labels: c.claim}}
			claim.Spec.ServerRef = &corev1.LocalObjectReference{Name: "server"}
			objects := []client.Object{n, claim}
			if c.maintenance != nil {
				objects = append(objects, &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", Labels: c.maintenance}})
			}
			api := fake.NewClientBuilder().WithScheme(everything(t)).WithObjects(objects...).Build()
			if c.deleted {
				if err := api.Delete(t.Context(), n); err != nil {
					t.Fatal(err)
				}
			}
			r := &reconciler{client: api}
			for range 2 { // a second look changes nothing
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "node"}}); err != nil {
					t.Fatal(err)
				}
				if got := told(t, api); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			}
		})
	}
}

func everything(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

func told(t *testing.T, api client.Client) string {
	t.Helper()
	n, c, m := &corev1.Node{}, &v1alpha1.ServerClaim{}, &v1alpha1.ServerMaintenance{}
	text := "no node"
	if api.Get(t.Context(), types.NamespacedName{Name: "node"}, n) == nil {
		text = fmt.Sprintf("node %v %v", n.Labels, n.Finalizers)
	}
	key := types.NamespacedName{Namespace: "ns", Name: "claim"}
	if err := api.Get(t.Context(), key, c); err != nil {
		t.Fatal(err)
	}
	text += fmt.Sprintf(", claim %v, ", c.Labels)
	if api.Get(t.Context(), key, m) != nil {
		return text + "no maintenance"
	}
	return text + fmt.Sprintf("%s %d %s", m.Spec.Policy, m.Spec.Priority, m.Spec.ServerRef.Name)
}

func TestProviderIDs(t *testing.T) {
	for id, want := range map[string]string{"metal://ns/claim": "ns/claim", "metal://ns": "", "metal:///claim": "", "metal://a/b/c": "", "aws://ns/claim": "", "": ""} {
		claim, is := claimOf(&corev1.Node{Spec: corev1.NodeSpec{ProviderID: id}})
		got := ""
		if is {
			got = claim.String()
		}
		if got != want {
			t.Errorf("%q is claim %q, want %q", id, got, want)
		}
	}
}
