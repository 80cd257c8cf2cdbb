// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestFurtherRegoHasAPackageOfItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		known      bool
	}{
		"below selection":     {"spread.rego", "package metalaw.selection.spread", true},
		"below admission":     {"images.rego", "package metalaw.admission.images", true},
		"the library of both": {"lib.rego", "package metalaw.lib", true},
		"below the library":   {"tables.rego", "package metalaw.lib.tables", true},
		"tests of it":         {"tables_test.rego", "package metalaw.lib.tables_test", true},
		"what is no Rego is told by those who parse it": {"tables.rego", "packag", true},
		"selection's own, as of a misspelt name":        {"select.rego", "package metalaw.selection", false},
		"admission's own":                               {"deny.rego", "package metalaw.admission", false},
		"a package that only begins like selection's":   {"x.rego", "package metalaw.selections", false},
		"a package that nothing evaluates":              {"x.rego", "package x", false},
		"another kind of file":                          {"tables.json", "{}", false},
	} {
		t.Run(name, func(t *testing.T) {
			files := Files{c.file: []byte(c.text)}
			var unknown []string
			for _, d := range missing(files) {
				if d.Code == "file-unknown" {
					unknown = append(unknown, d.File)
				}
			}
			if known := !slices.Contains(unknown, c.file); known != c.known {
				t.Errorf("known: %t, want %t", known, c.known)
			}
		})
	}
}

func TestAKustomizationInAConfigMapIsToldWhatItIsFor(t *testing.T) {
	found := missing(Files{"kustomization.yaml": nil})
	const want = "it says how the ConfigMap is made and is no part of it: take it out, or make the ConfigMap by `kubectl apply --server-side -k DIR`; known files: "
	if hint := found[len(found)-1].Hint; !strings.HasPrefix(hint, want) {
		t.Error(hint)
	}
}

func TestFurtherRegoCountsTowardsTheDigestAndTheLimits(t *testing.T) {
	files := Files{BundleFile: []byte("x")}
	more := maps.Clone(files)
	more["tables.rego"] = []byte("package metalaw.lib.tables")
	if files.Digest() == more.Digest() {
		t.Error("two bundles that decide otherwise have the same digest")
	}
	more["tables.rego"] = []byte("package metalaw.lib.tables\n# " + strings.Repeat("x", MaxFileBytes))
	if found := tooLarge(more); !found.HasErrors() {
		t.Error("a file that is too large passes")
	}
}
