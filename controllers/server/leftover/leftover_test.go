// SPDX-License-Identifier: Apache-2.0

package leftover

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/fieldindex"
)

func TestWhatFormerHoldersLeftOfABootGoes(t *testing.T) {
	boot := func(name, server, purpose string, owners ...metav1.OwnerReference) *v1alpha1.ServerBootConfiguration {
		b := &v1alpha1.ServerBootConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: owners}}
		if purpose != "" {
			b.Annotations = map[string]string{v1alpha1.BootPurposeAnnotation: purpose}
		}
		b.Spec.ServerRef.Name = server
		return b
	}
	claim := v1alpha1.BootPurposeClaim
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&v1alpha1.ServerBootConfiguration{}, fieldindex.BootConfigurationByServer, func(o client.Object) []string {
			return []string{o.(*v1alpha1.ServerBootConfiguration).Spec.ServerRef.Name}
		}).
		WithObjects(boot("left", "a", claim), boot("another-left", "a", claim), boot("of-another-server", "b", claim),
			boot("owned", "a", claim, metav1.OwnerReference{APIVersion: "v1", Kind: "K", Name: "n", UID: "u"}),
			boot("of-a-probe", "a", v1alpha1.BootPurposeProbe), boot("of-another-program", "a", "")).Build()
	if err := Drop(t.Context(), api, "a", claim); err != nil {
		t.Fatal(err)
	}
	var all v1alpha1.ServerBootConfigurationList
	if err := api.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	if want := []string{"of-a-probe", "of-another-program", "of-another-server", "owned"}; !slices.Equal(names, want) {
		t.Errorf("there are %q, want %q", names, want)
	}
}
