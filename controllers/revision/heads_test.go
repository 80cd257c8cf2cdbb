// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

// Two ConfigMaps may hold other files and still the same content, because what is left out is filled in.
func TestHeadsWithTheSameContentShareARevision(t *testing.T) {
	slim := func(cm *corev1.ConfigMap) {
		cm.Name = "slim"
		delete(cm.Data, bundle.MACPrefixesFile)
	}
	likeTheBuiltIn := func(cm *corev1.ConfigMap) {
		slim(cm)
		cm.Labels[policyv1alpha1.BundleLabel] = "default"
		for name, text := range cm.Data {
			cm.Data[name] = strings.ReplaceAll(text, "name: fleet\n", "name: default\n")
		}
	}
	for name, c := range map[string]struct {
		heads []*corev1.ConfigMap
		want  string
	}{
		"one of them is whole":   {[]*corev1.ConfigMap{fleet(t, "shadow", nil), fleet(t, "shadow", slim)}, "default 1.0.0 Embedded 1, fleet 1.0.0 Shadow 0"},
		"it is what is built in": {[]*corev1.ConfigMap{fleet(t, "active", likeTheBuiltIn)}, "default 1.0.0 Active 2"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLeader(t)
			for _, head := range c.heads {
				if err := l.api.Create(t.Context(), head); err != nil {
					t.Fatal(err)
				}
			}
			for range 5 {
				if r, err := l.Reconcile(t.Context(), reconcile.Request{}); err != nil || r.RequeueAfter == conflictPause {
					t.Fatalf("%+v, %v", r, err)
				}
			}
			if got := l.stored(t); got != c.want {
				t.Errorf("stored: %s\nwant:   %s", got, c.want)
			}
		})
	}
}
