// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// The label by which Argo CD tracks its application's BMCs must not make it delete their Servers.
func TestAServerIsNotTrackedByTheToolThatInstalledItsBMC(t *testing.T) {
	const instance = "app.kubernetes.io/instance"
	kept := map[string]string{"argocd.argoproj.io/sync-options": "Prune=false", "argocd.argoproj.io/compare-options": "IgnoreExtraneous"}
	for name, c := range map[string]struct {
		before func(*v1alpha1.Server)
		labels map[string]string
		says   map[string]string
	}{
		"a Server that bears nothing yet": {func(*v1alpha1.Server) {}, map[string]string{"rack": "r1"}, kept},
		"a Server to which a former build copied the label": {func(s *v1alpha1.Server) {
			s.Labels = map[string]string{"rack": "r1", instance: "fleet", "own": "x"}
			s.Annotations = map[string]string{v1alpha1.LabelsAnnotation: `{"app.kubernetes.io/instance":"fleet","rack":"r1"}`}
		}, map[string]string{"rack": "r1", "own": "x"}, kept},
		"a Server that another application tracks itself": {func(s *v1alpha1.Server) {
			s.Labels = map[string]string{instance: "servers"}
			s.Annotations = map[string]string{"argocd.argoproj.io/sync-options": "Prune=confirm"}
		}, map[string]string{"rack": "r1", instance: "servers"},
			map[string]string{"argocd.argoproj.io/sync-options": "Prune=confirm", "argocd.argoproj.io/compare-options": "IgnoreExtraneous"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := &v1alpha1.Server{}
				key := types.NamespacedName{Name: "b-system-0"}
				w.must(w.api.Get(t.Context(), key, s))
				c.before(s)
				w.must(w.api.Update(t.Context(), s))
				w.change("b", func(b *v1alpha1.BMC) { b.Labels = map[string]string{"rack": "r1", instance: "fleet"} })
				w.rest("b")
				w.must(w.api.Get(t.Context(), key, s))
				if !maps.Equal(s.Labels, c.labels) {
					t.Errorf("labels %v, want %v", s.Labels, c.labels)
				}
				for key, want := range c.says {
					if s.Annotations[key] != want {
						t.Errorf("%s is %q, want %q", key, s.Annotations[key], want)
					}
				}
				if got, want := s.Annotations[v1alpha1.LabelsAnnotation], `{"rack":"r1"}`; got != want {
					t.Errorf("it remembers %s as copied, want %s", got, want)
				}
			})
		})
	}
}
