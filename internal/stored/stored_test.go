// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"context"
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestAnInventoryIsFoundInEitherSpellingOfItsUUID(t *testing.T) {
	const shown, swapped = "33221100-5544-7766-8899-aabbccddeeff", "00112233-4455-6677-8899-aabbccddeeff"
	scheme := runtime.NewScheme()
	if err := policyv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	down := errors.New("down")
	for name, c := range map[string]struct {
		stored string
		err    error
		want   string
	}{
		"as it is spelled":               {stored: shown, want: shown},
		"in the other order":             {stored: swapped, want: swapped},
		"none of another machine":        {stored: "00000000-4455-6677-8899-aabbccddeeff"},
		"an error is not taken for none": {stored: swapped, err: down},
	} {
		kept := &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: c.stored}}
		from := fake.NewClientBuilder().WithScheme(scheme).WithObjects(kept).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if c.err != nil {
					return c.err
				}
				return w.Get(ctx, key, o, opts...)
			}}).Build()
		found, err := Inventory(t.Context(), from, shown)
		if got := nameOf(found); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: found %q, %v", name, got, err)
		}
	}
}

func nameOf(i *policyv1alpha1.ServerInventory) string {
	if i == nil {
		return ""
	}
	return i.Name
}

func TestACacheIsReadWithWhatTheProcessWroteLast(t *testing.T) {
	server := func(uid, version string) *v1alpha1.Server {
		return &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}}
	}
	for name, c := range map[string]struct {
		wrote *v1alpha1.Server
		ended types.UID
		// shown are what the cache shows, one after the other, as versions of the server "a".
		shown, want []string
	}{
		"its own write until the cache shows it": {wrote: server("a", "5"), shown: []string{"4", "5", "6"}, want: []string{"5", "5", "6"}},
		"what cannot be compared stands":         {wrote: server("a", "5"), shown: []string{"x"}, want: []string{"x"}},
		"not the write to another object":        {wrote: server("b", "5"), shown: []string{"4"}, want: []string{"4"}},
		"nothing of what it took away":           {ended: "a", shown: []string{"4", "4"}, want: []string{"", ""}},
	} {
		var w Written[*v1alpha1.Server]
		if c.wrote != nil {
			w.Wrote(c.wrote)
		}
		if c.ended != "" {
			w.Ended(c.ended)
		}
		var got []string
		for _, version := range c.shown {
			seen := ""
			for _, s := range Over(&w, []v1alpha1.Server{*server("a", version)}) {
				seen = s.ResourceVersion
			}
			got = append(got, seen)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
