// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestAWebhookConfigurationIsWrittenOnlyWhereItChanges(t *testing.T) {
	for name, c := range map[string]struct {
		authority string
		missing   bool
		writes    int
	}{
		"not with the same authority":        {"now", false, 0},
		"with another authority":             {"next", false, 1},
		"where it is gone, to learn that so": {"now", true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := admissionv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			stored := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "v"},
				Webhooks: []admissionv1.ValidatingWebhook{{Name: "a.example", ClientConfig: admissionv1.WebhookClientConfig{CABundle: []byte("now")}}}}
			writes := 0
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored).WithInterceptorFuncs(interceptor.Funcs{
				Update: func(ctx context.Context, api client.WithWatch, o client.Object, options ...client.UpdateOption) error {
					writes++
					return api.Update(ctx, o, options...)
				}}).Build()
			wanted := &unstructured.Unstructured{}
			wanted.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"))
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(stored), wanted); err != nil {
				t.Fatal(err)
			}
			hooks, _, err := unstructured.NestedSlice(wanted.Object, "webhooks")
			if err != nil {
				t.Fatal(err)
			}
			changed := stored.DeepCopy()
			changed.Webhooks[0].ClientConfig.CABundle = []byte(c.authority)
			hook, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&changed.Webhooks[0])
			if err != nil {
				t.Fatal(err)
			}
			hooks[0].(map[string]any)["clientConfig"] = hook["clientConfig"]
			if err := unstructured.SetNestedSlice(wanted.Object, hooks, "webhooks"); err != nil {
				t.Fatal(err)
			}
			if c.missing {
				if err := api.Delete(t.Context(), stored); err != nil {
					t.Fatal(err)
				}
			}
			writer := &changeWriter{Client: api, stored: api}
			if err := writer.Update(t.Context(), wanted); (err != nil) != c.missing {
				t.Fatal(err)
			}
			if writes != c.writes {
				t.Errorf("%d writes", writes)
			}
		})
	}
}
