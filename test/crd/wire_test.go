// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheSchemaKnowsEveryFieldOfTheWireExamples(t *testing.T) {
	defs := load(t)
	files, err := filepath.Glob("../../api/*/testdata/wire/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := filepath.Glob("../../api/*/*/testdata/wire/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range append(files, deeper...) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			body := object(t, string(text))
			kind := body["kind"].(string)
			d, found := defs[kind]
			if !found {
				t.Fatalf("no CustomResourceDefinition of kind %s", kind)
			}
			seen[kind] = true
			_, unknown, complaints := d.admit(body, nil)
			for _, path := range unknown {
				t.Errorf("the schema does not know %s, and would drop it", path)
			}
			for _, c := range complaints {
				t.Error(c)
			}
		})
	}
	for kind := range defs {
		if !seen[kind] {
			t.Errorf("kind %s has no example in testdata/wire", kind)
		}
	}
}
