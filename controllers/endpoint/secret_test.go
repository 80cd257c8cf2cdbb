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
	"github.com/metalaw/metalaw/redfish"
)

func TestOnlyTheFactoryAccountOfAnEndpointGoesWithIt(t *testing.T) {
	bmc := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}}
	bmc.Spec.BMCSecretRef.Name = "e"
	server := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: v1alpha1.ServerSpec{BMC: &v1alpha1.BMCAccess{}}}
	server.Spec.BMC.BMCSecretRef.Name = "e"
	for name, c := range map[string]struct {
		change func(*v1alpha1.BMCSecret)
		others []client.Object
		stays  bool
	}{
		"as it was made":               {func(*v1alpha1.BMCSecret) {}, nil, false},
		"rotated since":                {func(s *v1alpha1.BMCSecret) { s.Generation = 2 }, nil, true},
		"made by hand":                 {func(s *v1alpha1.BMCSecret) { s.Annotations = nil }, nil, true},
		"made for a former Endpoint":   {func(s *v1alpha1.BMCSecret) { s.Annotations[v1alpha1.FactoryCredentialsAnnotation] = "former" }, nil, true},
		"named by another BMC":         {func(*v1alpha1.BMCSecret) {}, []client.Object{bmc}, true},
		"named by a Server of its own": {func(*v1alpha1.BMCSecret) {}, []client.Object{server}, true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.others...).Build()
			e := &v1alpha1.Endpoint{ObjectMeta: metav1.ObjectMeta{Name: "e", UID: "uid-e"}}
			v := &visit{subject: &subject{Options: Options{Client: api, Reader: api}}, endpoint: e}
			if err := v.create(t.Context(), redfish.Credentials{Username: "admin", Password: "factory"}); err != nil {
				t.Fatal(err)
			}
			if err := api.Delete(t.Context(), &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "e"}}); err != nil {
				t.Fatal(err)
			}
			// The API server counts generations; the client that stands for it does not.
			secret := &v1alpha1.BMCSecret{}
			key := types.NamespacedName{Name: "e"}
			if err := api.Get(t.Context(), key, secret); err != nil {
				t.Fatal(err)
			}
			secret.Generation = 1
			c.change(secret)
			if err := api.Update(t.Context(), secret); err != nil {
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
