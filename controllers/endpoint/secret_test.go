// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/redfish"
)

func TestOnlyTheFactoryAccountOfAnEndpointGoesWithIt(t *testing.T) {
	bmc := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}}
	bmc.Spec.BMCSecretRef.Name = "e"
	server := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: v1alpha1.ServerSpec{BMC: &v1alpha1.BMCAccess{}}}
	server.Spec.BMC.BMCSecretRef.Name = "e"
	for name, c := range map[string]struct {
		change func(*v1alpha1.BMCSecret)
		others []client.Object // past the cache
		stays  bool
	}{
		"as it was made":    {func(*v1alpha1.BMCSecret) {}, nil, false},
		"rotated since":     {func(s *v1alpha1.BMCSecret) { s.Data["password"] = []byte("mine") }, nil, true},
		"with one more key": {func(s *v1alpha1.BMCSecret) { s.Data["password-2"] = []byte("mine") }, nil, true},
		"labelled since":    {func(s *v1alpha1.BMCSecret) { s.Labels = map[string]string{"rack": "7"} }, nil, false},
		"without a digest":  {func(s *v1alpha1.BMCSecret) { s.Annotations[v1alpha1.FactoryCredentialsAnnotation] = "uid-e" }, nil, true},
		"made by hand":      {func(s *v1alpha1.BMCSecret) { s.Annotations = nil }, nil, true},
		"made for a former Endpoint": {func(s *v1alpha1.BMCSecret) {
			s.Annotations[v1alpha1.FactoryCredentialsAnnotation] = seal("former", s.Data)
		}, nil, true},
		"named by another BMC":         {func(*v1alpha1.BMCSecret) {}, []client.Object{bmc}, true},
		"named by a Server of its own": {func(*v1alpha1.BMCSecret) {}, []client.Object{server}, true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			api := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&v1alpha1.BMC{}, fieldindex.BMCBySecret, func(o client.Object) []string {
				return []string{o.(*v1alpha1.BMC).Spec.BMCSecretRef.Name}
			}).Build()
			past := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.others...).Build()
			e := &v1alpha1.Endpoint{ObjectMeta: metav1.ObjectMeta{Name: "e", UID: "uid-e"}}
			v := &scope{subject: &subject{Options: Options{Client: api, Reader: past}}, endpoint: e}
			if err := v.create(t.Context(), redfish.Credentials{Username: "admin", Password: "factory"}, ""); err != nil {
				t.Fatal(err)
			}
			if err := api.Delete(t.Context(), &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "e"}}); err != nil {
				t.Fatal(err)
			}
			// It is written anew, as by kubectl replace --force: the new one has the annotations and the first generation.
			secret := &v1alpha1.BMCSecret{}
			key := types.NamespacedName{Name: "e"}
			if err := api.Get(t.Context(), key, secret); err != nil {
				t.Fatal(err)
			}
			if err := api.Delete(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			secret.UID, secret.ResourceVersion = "uid-new", ""
			c.change(secret)
			if err := api.Create(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := v.dropSecret(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			err := api.Get(t.Context(), key, secret)
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == c.stays {
				t.Errorf("it stays: %t (%v)", err == nil, err)
			}
		})
	}
}
