// SPDX-License-Identifier: Apache-2.0

package objectonly

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// openAPI is what a schema says of kinds.
type openAPI struct {
	Type                 string
	Properties           map[string]*openAPI
	AdditionalProperties *openAPI
	Items                *openAPI
}

// plain is a shape as a schema would say it.
func (s *shape) plain() *openAPI {
	if s == nil {
		return nil
	}
	o := &openAPI{Type: map[kind]string{text: "string", number: "integer", truth: "boolean", list: "array", object: "object"}[s.kind]}
	if s.kind == list {
		o.Items = s.of.plain()
	} else {
		o.AdditionalProperties = s.of.plain()
	}
	for name, field := range s.fields {
		if o.Properties == nil {
			o.Properties = map[string]*openAPI{}
		}
		o.Properties[name] = field.plain()
	}
	return o
}

func TestTheShapeOfAServerClaimIsItsSchema(t *testing.T) {
	written, err := os.ReadFile("../../../config/crd/bases/metal.ironcore.dev_serverclaims.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema *openAPI }
			}
		}
	}
	if err := yaml.Unmarshal(written, &definition); err != nil {
		t.Fatal(err)
	}
	want, got := definition.Spec.Versions[0].Schema.OpenAPIV3Schema, schemas["ServerClaim"].plain()
	got.Properties["metadata"].Properties = nil // every definition leaves that to the API server
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
