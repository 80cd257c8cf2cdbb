// SPDX-License-Identifier: Apache-2.0

// Package chart holds the Helm chart against the kustomizations, with the libraries of Helm and Kustomize.
package chart

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// objects are what is installed, by kind and name.
type objects map[string]map[string]any

func (o objects) add(t *testing.T, text string) {
	t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		var parsed map[string]any
		if err := yaml.Unmarshal([]byte(document), &parsed); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if len(parsed) == 0 {
			continue
		}
		metadata, _ := parsed["metadata"].(map[string]any)
		if annotations, _ := metadata["annotations"].(map[string]any); annotations != nil {
			// How Helm installs an object is no part of it.
			maps.DeleteFunc(annotations, func(key string, _ any) bool { return strings.HasPrefix(key, "helm.sh/") })
			if len(annotations) == 0 {
				delete(metadata, "annotations")
			}
		}
		o[fmt.Sprintf("%s/%s", parsed["kind"], metadata["name"])] = parsed
	}
}

// rendered is what Helm installs with these values.
func rendered(t *testing.T, values map[string]any) objects {
	t.Helper()
	chart, err := loader.LoadDir("../../config/chart")
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "metalaw", Namespace: "metalaw-system"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	templates, err := engine.Render(chart, all)
	if err != nil {
		t.Fatal(err)
	}
	found := objects{}
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		found.add(t, templates[name])
	}
	for _, crd := range chart.CRDObjects() {
		found.add(t, string(crd.File.Data))
	}
	return found
}

// kustomized is what kubectl apply -k installs.
func kustomized(t *testing.T, folders ...string) objects {
	t.Helper()
	found := objects{}
	for _, folder := range folders {
		resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../../config/"+folder)
		if err != nil {
			t.Fatal(err)
		}
		text, err := resources.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		found.add(t, string(text))
	}
	return found
}

// spaces compares texts without their white space: libraries fold a CEL expression of several lines in different ways.
var spaces = cmp.Comparer(func(a, b string) bool {
	return strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
})

func TestTheChartInstallsWhatTheKustomizationsDo(t *testing.T) {
	for name, c := range map[string]struct {
		values  map[string]any
		folders []string
	}{
		"with the values of the chart": {map[string]any{"createNamespace": true}, []string{"default"}},
		"with monitoring": {
			map[string]any{"createNamespace": true, "monitoring": map[string]any{"enabled": true}}, []string{"default", "prometheus"},
		},
		"with the boot service": {
			map[string]any{"createNamespace": true, "boot": map[string]any{"enabled": true}}, []string{"default", "boot"},
		},
		"with FeDHCP": {
			map[string]any{"createNamespace": true, "fedhcp": map[string]any{"enabled": true}}, []string{"default", "fedhcp"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			installed := rendered(t, c.values)
			manager := at(installed["Deployment/metalaw-manager"], "spec", "template", "spec", "containers", 0)
			// An overlay gives this flag where the boot service runs.
			manager["args"] = slices.DeleteFunc(manager["args"].([]any), func(arg any) bool {
				return arg == "--media-url=https://metalaw-media.metalaw-system.svc:8083"
			})
			if diff := cmp.Diff(kustomized(t, c.folders...), installed, spaces); diff != "" {
				t.Errorf("kustomize (-) and Helm (+) differ:\n%s", diff)
			}
		})
	}
}

func TestAValueReachesItsObject(t *testing.T) {
	const deployment, service = "Deployment/metalaw-manager", "Service/metalaw-registry"
	container := func(o objects) map[string]any { return at(o[deployment], "spec", "template", "spec", "containers", 0) }
	for name, c := range map[string]struct {
		values map[string]any
		got    func(objects) any
		want   any
	}{
		"replicas": {map[string]any{"replicas": 3},
			func(o objects) any { return at(o[deployment], "spec")["replicas"] }, 3.0},
		"one replica has no disruption budget": {map[string]any{"replicas": 1},
			func(o objects) any { return o["PodDisruptionBudget/metalaw-manager"] == nil }, true},
		"the image": {map[string]any{"image": "r.example/metalaw@sha256:00"},
			func(o objects) any { return container(o)["image"] }, "r.example/metalaw@sha256:00"},
		"the address of the registry": {map[string]any{"registry": map[string]any{"url": "https://r.example:10000"}},
			func(o objects) any { return container(o)["args"].([]any)[7] }, "--registry-url=https://r.example:10000"},
		"who may decide where a password goes": {map[string]any{"credentialUse": "warn"},
			func(o objects) any { return container(o)["args"].([]any)[8] }, "--credential-use=warn"},
		"the service account of FeDHCP": {
			map[string]any{"fedhcp": map[string]any{"enabled": true, "namespace": "dhcp", "serviceAccount": "server"}},
			func(o objects) any { return o["ClusterRoleBinding/metalaw-fedhcp"]["subjects"] },
			[]any{map[string]any{"kind": "ServiceAccount", "name": "server", "namespace": "dhcp"}},
		},
		"flags": {
			map[string]any{
				"registry": map[string]any{"extraDNSNames": []any{"r.example"}}, "probeImage": "probe:1", "bmcCA": "PEM",
				"extraArgs": []any{"--observe-only"},
			},
			func(o objects) any { return container(o)["args"].([]any)[9:] },
			[]any{"--extra-dns-names=r.example", "--probe-image=probe:1", "--bmc-ca-file=/bmc-ca/ca.crt", "--observe-only"},
		},
		"the authority of the BMCs": {map[string]any{"bmcCA": "PEM 1\nPEM 2"},
			func(o objects) any {
				return strings.TrimSpace(at(o["ConfigMap/metalaw-bmc-ca"], "data")["ca.crt"].(string))
			}, "PEM 1\nPEM 2"},
		"its volume": {map[string]any{"bmcCA": "PEM"},
			func(o objects) any { return at(o[deployment], "spec", "template", "spec", "volumes", 1)["name"] }, "bmc-ca"},
		"a Service for the provisioning network": {
			map[string]any{"registry": map[string]any{"serviceType": "LoadBalancer", "serviceAnnotations": map[string]any{"a": "b"}}},
			func(o objects) any {
				return []any{at(o[service], "spec")["type"], at(o[service], "metadata", "annotations")["a"]}
			},
			[]any{"LoadBalancer", "b"},
		},
		"credentials of the image's registry": {map[string]any{"imagePullSecrets": []any{map[string]any{"name": "pull"}}},
			func(o objects) any {
				return at(o[deployment], "spec", "template", "spec", "imagePullSecrets", 0)["name"]
			}, "pull"},
		"the boot service": {
			map[string]any{"boot": map[string]any{"enabled": true, "url": "https://b:1", "allowRegistries": []any{"r.example", "s.example"}, "extraArgs": []any{"--x"}}},
			func(o objects) any {
				args := at(o["Deployment/metalaw-boot"], "spec", "template", "spec", "containers", 0)["args"].([]any)
				return []any{args[2], args[4], args[len(args)-1]}
			},
			[]any{"--boot-url=https://b:1", "--allow-registries=r.example,s.example", "--x"},
		},
		"the boot service sees the addresses of machines": {
			map[string]any{"boot": map[string]any{"enabled": true, "serviceType": "LoadBalancer"}},
			func(o objects) any {
				return []any{at(o["Service/metalaw-boot"], "spec")["externalTrafficPolicy"],
					at(o["Service/metalaw-media"], "spec")["externalTrafficPolicy"]}
			},
			[]any{"Local", "Local"},
		},
		"where the values say otherwise, it does not": {
			map[string]any{"boot": map[string]any{"enabled": true, "serviceType": "NodePort", "externalTrafficPolicy": ""}},
			func(o objects) any { return at(o["Service/metalaw-boot"], "spec")["externalTrafficPolicy"] }, nil,
		},
		"a Service within the cluster has no such policy": {
			map[string]any{"boot": map[string]any{"enabled": true, "serviceType": "ClusterIP"}},
			func(o objects) any { return at(o["Service/metalaw-boot"], "spec")["externalTrafficPolicy"] }, nil,
		},
		"the manager knows the boot service": {
			map[string]any{"boot": map[string]any{"enabled": true, "mediaURL": "https://m:2"}},
			func(o objects) any { return container(o)["args"].([]any)[9] }, "--media-url=https://m:2",
		},
		"no Namespace, for Helm has made it": {nil,
			func(o objects) any { return o["Namespace/metalaw-system"] == nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.got(rendered(t, c.values))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// at follows keys and indices.
func at(value any, path ...any) map[string]any {
	for _, step := range path {
		switch here := value.(type) {
		case map[string]any:
			value = here[step.(string)]
		case []any:
			value = here[step.(int)]
		}
	}
	found, _ := value.(map[string]any)
	return found
}
