// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// changing is a manager whose client writes changes alone.
type changing struct {
	ctrl.Manager
	client client.Client
}

// onlyChanges makes the rotator write a webhook configuration only where the authority in it is another one: it would
// otherwise write every one of them whenever it starts, and for each event of its Secret.
func onlyChanges(mgr ctrl.Manager) ctrl.Manager {
	return &changing{Manager: mgr, client: &changeWriter{Client: mgr.GetClient(), stored: mgr.GetCache()}}
}

// GetClient implements manager.Manager.
func (m *changing) GetClient() client.Client { return m.client }

// changeWriter leaves out updates that would change nothing.
type changeWriter struct {
	client.Client
	// stored reads the cache: the manager may list and watch configurations, and not get them. What it is behind of comes as an
	// event, for which the rotator looks again.
	stored client.Reader
}

// Update implements client.Writer. What cannot be read is written: the write says what is wrong.
func (w *changeWriter) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	if wanted, is := object.(*unstructured.Unstructured); is {
		stored := &unstructured.Unstructured{}
		stored.SetGroupVersionKind(wanted.GroupVersionKind())
		err := w.stored.Get(ctx, client.ObjectKeyFromObject(wanted), stored)
		if err == nil && equality.Semantic.DeepEqual(content(stored), content(wanted)) {
			return nil
		}
	}
	return w.Client.Update(ctx, object, options...)
}

// content is an object without what the API server keeps for itself.
func content(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	return o.Object
}
