// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := metalv1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	if err := policyv1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// Each file in testdata/wire sets every field that the contract names for its kind, and so a field that is missing,
// misspelt or of another type shows as an error or a difference.
func TestAWireExampleSurvivesTheTypesUnchanged(t *testing.T) {
	s := scheme(t)
	files, err := filepath.Glob("v1alpha1/testdata/wire/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	policyFiles, err := filepath.Glob("policy/v1alpha1/testdata/wire/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, policyFiles...) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{}
			if err := yaml.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			o, err := s.New(schema.FromAPIVersionAndKind(want["apiVersion"].(string), want["kind"].(string)))
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.UnmarshalStrict(text, o); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, generic(t, o)); diff != "" {
				t.Errorf("read and written again (-wire +ours):\n%s", diff)
			}
			if diff := cmp.Diff(o, o.DeepCopyObject()); diff != "" {
				t.Errorf("deep copy differs:\n%s", diff)
			}
		})
	}
}

func TestABodyOfAnOldClientIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		into runtime.Object
		want runtime.Object
	}{
		"endpointRef null is no endpointRef": {
			`{"spec":{"endpointRef":null,"access":{"ip":"10.0.0.7"}}}`,
			&metalv1alpha1.BMC{},
			&metalv1alpha1.BMC{Spec: metalv1alpha1.BMCSpec{Access: &metalv1alpha1.InlineEndpoint{IP: "10.0.0.7"}}},
		},
		"an empty status and creationTimestamp null are nothing": {
			`{"metadata":{"name":"c","creationTimestamp":null},"spec":{"power":"Off","image":"os:1"},"status":{}}`,
			&metalv1alpha1.ServerClaim{},
			func() runtime.Object {
				c := &metalv1alpha1.ServerClaim{Spec: metalv1alpha1.ServerClaimSpec{Power: metalv1alpha1.PowerOff, Image: "os:1"}}
				c.Name = "c"
				return c
			}(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := yaml.UnmarshalStrict([]byte(c.body), c.into); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, c.into); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What a client writes must not name fields that it does not mean: a status in an applied body, for one, would be
// taken for a wish to own it.
func TestAnObjectIsWrittenWithoutWhatItDoesNotSay(t *testing.T) {
	for kind, typ := range scheme(t).AllKnownTypes() {
		if kind.Group == "" || kind.Version == runtime.APIVersionInternal || typ.PkgPath() == "k8s.io/apimachinery/pkg/apis/meta/v1" {
			continue
		}
		t.Run(kind.Kind, func(t *testing.T) {
			got := generic(t, reflect.New(typ).Interface().(runtime.Object))
			for _, name := range []string{"metadata", "status", "report", "wipe", "custody", "immutable"} {
				if value, found := got[name]; found {
					t.Errorf("an empty %s is written with %s: %v", kind.Kind, name, value)
				}
			}
		})
	}
}

func generic(t *testing.T, o runtime.Object) map[string]any {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]any{}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
