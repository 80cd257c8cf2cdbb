// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// cluster is what Helm looks up in. It has the kind FleetControl where served, and its object where there.
type cluster struct {
	dynamic.NamespaceableResourceInterface
	served, there bool
}

func (c cluster) GetClientFor(_, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	if !c.served {
		return nil, false, &apierrors.StatusError{ErrStatus: metav1.Status{Message: "no matches for kind " + kind}}
	}
	return c, false, nil
}

func (c cluster) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	if !c.there {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "fleetcontrols"}, name)
	}
	return &unstructured.Unstructured{Object: map[string]any{"kind": "FleetControl", "metadata": map[string]any{"name": name}}}, nil
}

// fleetControl is the FleetControl that Helm installs into a cluster; empty where it installs none.
func fleetControl(t *testing.T, c cluster) map[string]any {
	t.Helper()
	chart, err := loader.LoadDir("../../config/chart")
	if err != nil {
		t.Fatal(err)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	if c.served {
		capabilities.APIVersions = append(capabilities.APIVersions, "policy.metalaw.dev/v1alpha1/FleetControl")
	}
	values, err := chartutil.ToRenderValues(chart, nil, chartutil.ReleaseOptions{Name: "metalaw"}, capabilities)
	if err != nil {
		t.Fatal(err)
	}
	all, err := engine.RenderWithClientProvider(chart, values, c)
	if err != nil {
		t.Fatal(err)
	}
	var parsed map[string]any
	if err := yaml.Unmarshal([]byte(all["metalaw/templates/fleetcontrol-fleet.yaml"]), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestHelmMakesTheFleetControlOnlyWhereThereIsNone(t *testing.T) {
	for name, c := range map[string]struct {
		cluster
		made bool
	}{
		"a new cluster, without the kind":       {cluster{}, true},
		"a cluster that has the kind alone":     {cluster{served: true}, true},
		"an upgrade, and a second installation": {cluster{served: true, there: true}, false},
	} {
		if made := len(fleetControl(t, c.cluster)) > 0; made != c.made {
			t.Errorf("%s: made %t, want %t", name, made, c.made)
		}
	}
}

// Argo CD deletes a hook and makes it anew at each sync, and prunes what a chart no longer has. Helm deletes what is not kept.
func TestNoSyncAndNoUninstallDeletesTheFleetControl(t *testing.T) {
	control := fleetControl(t, cluster{})
	annotations := at(control, "metadata", "annotations")
	for key := range annotations {
		if strings.HasSuffix(key, "/hook") {
			t.Errorf("it is a hook: %s", key)
		}
	}
	for key, want := range map[string]string{"helm.sh/resource-policy": "keep", "argocd.argoproj.io/sync-options": "Prune=false"} {
		if annotations[key] != want {
			t.Errorf("%s is %v, want %s", key, annotations[key], want)
		}
	}
	if freezes, named := at(control, "spec")["freezes"]; named {
		t.Errorf("it names freezes, which a sync would then write: %v", freezes)
	}
}
