// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/fieldindex"
)

func TestServersAreHeldWithTheirBMC(t *testing.T) {
	for name, c := range map[string]struct {
		asks string // of the BMC b1; "-" where there is none
		ref  string // the BMC that the Server names
		has  string // the mark that the Server has
		want string
	}{
		"a BMC that asks for nothing holds none":                       {"", "b1", "", ""},
		"a BMC that is left alone itself holds none":                   {"ignore", "b1", "", ""},
		"a BMC that asks for it holds its Servers":                     {"ignore-child", "b1", "", "b1"},
		"in each spelling":                                             {"ignore-child-and-self-reconciliation", "b1", "", "b1"},
		"its Servers stay held":                                        {"ignore-child", "b1", "b1", "b1"},
		"they are let go when it asks no more":                         {"", "b1", "b1", ""},
		"also when the BMC alone stays held":                           {"ignore", "b1", "b1", ""},
		"the Server of another BMC is not held":                        {"ignore-child", "b2", "", ""},
		"one that went to another BMC keeps it until that one is seen": {"ignore-child", "b2", "b1", "b1"},
		"one that names no BMC any more is let go":                     {"ignore-child", "", "b1", ""},
		"while the BMC is gone nothing is known, and all stays":        {"-", "b1", "b1", "b1"},
		"nor is a Server held because its BMC is gone":                 {"-", "b1", "", ""},
		"one that came from another BMC which held it changes hands":   {"ignore-child", "b1", "b0", "b1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{}
			s.Name, s.Annotations = "s", map[string]string{"other": "stays"}
			if c.has != "" {
				s.Annotations[v1alpha1.HeldByBMCAnnotation] = c.has
			}
			if c.ref != "" {
				s.Spec.BMCRef = &corev1.LocalObjectReference{Name: c.ref}
			}
			objects := []client.Object{s}
			if c.asks != "-" {
				b := &v1alpha1.BMC{}
				b.Name, b.Annotations = "b1", map[string]string{v1alpha1.OperationAnnotation: c.asks}
				objects = append(objects, b)
			}
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
			if _, err := (&hold{client: api}).Reconcile(t.Context(), request("s")); err != nil {
				t.Fatal(err)
			}
			if err := api.Get(t.Context(), types.NamespacedName{Name: "s"}, s); err != nil {
				t.Fatal(err)
			}
			if got, there := s.Annotations[v1alpha1.HeldByBMCAnnotation]; got != c.want || there != (c.want != "") || s.Annotations["other"] != "stays" {
				t.Errorf("the Server has %v, want %q", s.Annotations, c.want)
			}
		})
	}
}

func TestServersThatCannotBeListedAreHeldLater(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b := &v1alpha1.BMC{}
	b.Name, b.Annotations = "b1", map[string]string{v1alpha1.OperationAnnotation: "ignore-child"}
	objects := []client.Object{b}
	for server, bmc := range map[string]string{"s1": "b1", "s2": "b1", "other": "b2"} {
		s := &v1alpha1.Server{}
		s.Name, s.Spec.BMCRef = server, &corev1.LocalObjectReference{Name: bmc}
		objects = append(objects, s)
	}
	down := errors.New("the API server is away")
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&v1alpha1.Server{}, fieldindex.ServerByBMC, func(o client.Object) []string { return []string{bmcOf(o)} }).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, o ...client.ListOption) error {
			if down != nil {
				return down
			}
			return c.List(ctx, l, o...)
		}}).Build()
	h := &hold{client: api}
	if _, err := h.markAll(t.Context(), request("b1")); !errors.Is(err, down) {
		t.Fatalf("error %v, so that nobody tries again", err)
	}
	down = nil
	if _, err := h.markAll(t.Context(), request("b1")); err != nil {
		t.Fatal(err)
	}
	for server, want := range map[string]string{"s1": "b1", "s2": "b1", "other": ""} {
		s := &v1alpha1.Server{}
		if err := api.Get(t.Context(), types.NamespacedName{Name: server}, s); err != nil {
			t.Fatal(err)
		}
		if got := s.Annotations[v1alpha1.HeldByBMCAnnotation]; got != want {
			t.Errorf("%s is held by %q, want %q", server, got, want)
		}
	}
}
