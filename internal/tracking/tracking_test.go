// SPDX-License-Identifier: Apache-2.0

package tracking

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheLabelsOfToolsAreLeftOut(t *testing.T) {
	for key, left := range map[string]bool{
		"app.kubernetes.io/instance":       true,
		"argocd.argoproj.io/instance":      true,
		"kapp.k14s.io/app":                 true,
		"kapp.k14s.io/association":         true,
		"kustomize.toolkit.fluxcd.io/name": true,
		"helm.toolkit.fluxcd.io/name":      true,
		"velero.io/restore-name":           true,
		"rack":                             false,
		"topology.kubernetes.io/zone":      false,
		"metal.ironcore.dev/instance-type": false,
		"app.kubernetes.io":                false, // a name, and no prefix
		"example.com/velero.io":            false,
	} {
		if got := len(Without(map[string]string{key: "v"})) == 0; got != left {
			t.Errorf("%s: left out %t, want %t", key, got, left)
		}
	}
}

func TestArgoCDIsToldToKeepAnObject(t *testing.T) {
	for name, c := range map[string]struct{ has, want map[string]string }{
		"one without annotations": {nil, map[string]string{SyncOptions: "Prune=false", CompareOptions: "IgnoreExtraneous"}},
		"what a user or a repository says stays": {map[string]string{SyncOptions: "Prune=confirm"},
			map[string]string{SyncOptions: "Prune=confirm", CompareOptions: "IgnoreExtraneous"}},
	} {
		o := metav1.ObjectMeta{Annotations: c.has}
		if Keep(&o); !maps.Equal(o.Annotations, c.want) {
			t.Errorf("%s: got %v, want %v", name, o.Annotations, c.want)
		}
	}
}
