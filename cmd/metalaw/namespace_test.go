// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/controllers"
)

func TestTheManagersNamespaceHasToBeThere(t *testing.T) {
	namespaces := schema.GroupResource{Resource: "namespaces"}
	for name, c := range map[string]struct {
		namespace string
		answer    error
		want      string
	}{
		"one that is there": {"metalaw-system", nil, ""},
		"one that is not": {"nowhere", nil,
			`nothing was started: --namespace="nowhere": there is no such namespace; name the namespace that the manager runs in, such as metalaw-system, or create it`},
		"one in which the manager has no rights": {"nowhere", apierrors.NewForbidden(namespaces, "nowhere", errors.New("no")),
			`nothing was started: --namespace="nowhere": there is no such namespace, or the manager has no rights in it (namespaces "nowhere" is forbidden: no); ` +
				`name the namespace that the manager runs in, such as metalaw-system: the Role metalaw-manager there lets it get the namespace`},
		"one of which the API server says nothing": {"nowhere", apierrors.NewServiceUnavailable("starting"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "metalaw-system"}}).
				WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if c.answer != nil {
						return c.answer
					}
					return api.Get(ctx, key, o, opts...)
				}}).Build()
			got := ""
			if err := (&options{Options: controllers.Options{Namespace: c.namespace}}).checkNamespace(t.Context(), api); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
