// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// definition is one CustomResourceDefinition with what an API server makes of it.
type definition struct {
	crd        *apiextensions.CustomResourceDefinition
	structural *schema.Structural
	openapi    validation.SchemaValidator
	cel        *cel.Validator
}

// load reads every generated definition, keyed by kind.
func load(t *testing.T) map[string]*definition {
	t.Helper()
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no CustomResourceDefinitions in config/crd/bases (%v); run `go generate ./api`", err)
	}
	defs := map[string]*definition{}
	for _, file := range files {
		d := read(t, file)
		defs[d.crd.Spec.Names.Kind] = d
	}
	return defs
}

func read(t *testing.T, file string) *definition {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var external apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &external); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&external)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&external.Spec)
	external.Status.StoredVersions = []string{external.Spec.Versions[0].Name}
	d := &definition{crd: &apiextensions.CustomResourceDefinition{}}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&external, d.crd, nil); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	props := d.props()
	if d.structural, err = schema.NewStructural(props.OpenAPIV3Schema); err != nil {
		t.Fatalf("%s: not structural: %v", file, err)
	}
	if err := defaulting.PruneDefaults(d.structural); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if d.openapi, _, err = validation.NewSchemaValidator(props.OpenAPIV3Schema); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	d.cel = cel.NewValidator(d.structural, true, celconfig.PerCallLimit)
	return d
}

// props is the schema of the only version, wherever the conversion put it.
func (d *definition) props() *apiextensions.CustomResourceValidation {
	if d.crd.Spec.Validation != nil {
		return d.crd.Spec.Validation
	}
	return d.crd.Spec.Versions[0].Schema
}

// admit does with a body what an API server does before it stores it: unknown fields are pruned, nulls that the schema
// does not allow dropped, defaults filled in, and the schema, list types and CEL rules checked. A nil old is a create.
// It returns the object as it would be stored, the fields that were unknown, and every complaint.
func (d *definition) admit(body, old map[string]any) (stored map[string]any, unknown, complaints []string) {
	stored = runtime.DeepCopyJSON(body)
	unknown = pruning.PruneWithOptions(stored, d.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(stored, d.structural)
	defaulting.Default(stored, d.structural)

	errs := listtype.ValidateListSetsAndMaps(nil, d.structural, stored)
	var oldObject any
	if old == nil {
		errs = append(errs, validation.ValidateCustomResource(nil, stored, d.openapi)...)
	} else {
		oldObject = old
		errs = append(errs, validation.ValidateCustomResourceUpdate(nil, stored, old, d.openapi)...)
	}
	celErrs, _ := d.cel.Validate(context.Background(), nil, d.structural, stored, oldObject, celconfig.RuntimeCELCostBudget)
	for _, err := range append(errs, celErrs...) {
		complaints = append(complaints, err.Error())
	}
	return stored, unknown, complaints
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	var o map[string]any
	if err == nil {
		err = utiljson.Unmarshal(asJSON, &o) // whole numbers are integers, as for the API server
	}
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return o
}
