// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestAssemble(t *testing.T) {
	parts := map[string]string{"fleet-b/lifecycle.yaml": "states: {}"}
	manifest := string(writeParts(map[string]string{"lifecycle.yaml": "fleet-b"}, Files{"lifecycle.yaml": []byte("states: {}")}))
	for name, c := range map[string]struct {
		head       map[string]string
		files      string
		found      string
		incomplete bool
	}{
		"a head without a manifest is the bundle": {
			head: map[string]string{"bundle.yaml": "x"}, files: "bundle.yaml"},
		"a manifest adds files of parts and is none itself": {
			head: map[string]string{"bundle.yaml": "x", "manifest.yaml": manifest}, files: "bundle.yaml lifecycle.yaml"},
		"a part that is not there yet leaves the bundle incomplete": {
			head:  map[string]string{"bundle.yaml": "x", "manifest.yaml": strings.ReplaceAll(manifest, "fleet-b", "fleet-c")},
			found: "manifest.yaml:4:3 manifest-part-missing", incomplete: true},
		"a part of another version leaves the bundle incomplete": {
			head: map[string]string{"manifest.yaml": string(writeParts(map[string]string{"lifecycle.yaml": "fleet-b"},
				Files{"lifecycle.yaml": []byte("states: {A: {}}")}))},
			found: "manifest.yaml:4:3 manifest-part-differs", incomplete: true},
		"a file that is given twice is broken": {
			head:  map[string]string{"lifecycle.yaml": "x", "manifest.yaml": manifest},
			found: "manifest.yaml:4:3 manifest-twice"},
		"a digest of another form is broken": {
			head: map[string]string{"manifest.yaml": "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Manifest\nfiles:\n" +
				"- {name: a.rego, configMap: b, digest: md5}\n"},
			found: "manifest.yaml:4:40 manifest-digest"},
		"a manifest that does not say what it is is broken": {
			head:  map[string]string{"manifest.yaml": "files:\n- {name: lifecycle.yaml, configMap: fleet-b, digest: " + fileDigest("states: {}") + "}\n"},
			found: "manifest.yaml:1:1 yaml-missing-key"},
		"a ConfigMap of a name that none can have is not waited for": {
			head:  map[string]string{"manifest.yaml": strings.ReplaceAll(manifest, "fleet-b", "Fleet_B")},
			found: "manifest.yaml:5:14 manifest-name"},
		"a file in another folder is not waited for": {
			head:  map[string]string{"manifest.yaml": strings.ReplaceAll(manifest, "lifecycle.yaml", "../lifecycle.yaml")},
			found: "manifest.yaml:4:9 manifest-name"},
		"a head that names itself is broken": {
			head:  map[string]string{"manifest.yaml": strings.ReplaceAll(manifest, "fleet-b", "fleet-a")},
			found: "manifest.yaml:4:3 manifest-name"},
		"a manifest without files is broken": {
			head:  map[string]string{"manifest.yaml": "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Manifest\n"},
			found: "manifest.yaml:1:1 manifest-empty"},
		"a manifest that is no YAML is broken": {
			head:  map[string]string{"manifest.yaml": ""},
			found: "manifest.yaml:1:1 yaml-empty"},
	} {
		t.Run(name, func(t *testing.T) {
			files, found := Assemble("fleet-a", c.head, func(configMap, file string) (string, bool) {
				text, ok := parts[configMap+"/"+file]
				return text, ok
			})
			var got []string
			for _, d := range found {
				place, _, _ := strings.Cut(d.String(), ": ")
				got = append(got, place+" "+d.Code)
			}
			if strings.Join(got, ", ") != c.found || Incomplete(found) != c.incomplete {
				t.Errorf("found %q (incomplete %v), want %q (%v)", got, Incomplete(found), c.found, c.incomplete)
			}
			if c.found == "" && names(files) != c.files {
				t.Errorf("files %s, want %s", names(files), c.files)
			}
		})
	}
}

// manifestOf lists a number of files, each of which is there.
func manifestOf(files int) string {
	var text strings.Builder
	text.WriteString("apiVersion: policy.metalaw.dev/v1alpha1\nkind: Manifest\nfiles:\n")
	for i := range files {
		fmt.Fprintf(&text, "- {name: part-%d.rego, configMap: fleet-b, digest: %s}\n", i, fileDigest(""))
	}
	return text.String()
}

func TestOfTooLongAManifestNoMoreIsFetchedThanMayBeListed(t *testing.T) {
	fetched := 0
	_, found := Assemble("fleet-a", map[string]string{PartsFile: manifestOf(10_000)}, func(string, string) (string, bool) {
		fetched++
		return "", true
	})
	const want = "manifest.yaml:36:3: error: the manifest lists 10000 files and may list 32 " +
		"(put several files into the head, and list only what is too large for it) [manifest-too-many]"
	if got := found.Err(); got == nil || got.Error() != want {
		t.Errorf("found %v, want %s", got, want)
	}
	if fetched != 32 || len(Parts(manifestOf(10_000))) != 32 {
		t.Errorf("%d are fetched and %d listed, want 32", fetched, len(Parts(manifestOf(10_000))))
	}
}

// writeParts renders the manifest of files that are kept in ConfigMaps.
func writeParts(configMapOf map[string]string, files Files) []byte {
	out := "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Manifest\nfiles:\n"
	for _, name := range slices.Sorted(maps.Keys(configMapOf)) {
		out += fmt.Sprintf("- name: %s\n  configMap: %s\n  digest: %s\n", name, configMapOf[name], fileDigest(string(files[name])))
	}
	return []byte(out)
}

func names(files Files) string {
	var all []string
	for _, name := range []string{"bundle.yaml", "lifecycle.yaml", "manifest.yaml"} {
		if _, ok := files[name]; ok {
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

func TestPartsAreThoseThatAManifestLists(t *testing.T) {
	manifest := writeParts(map[string]string{"a.rego": "one"}, Files{"a.rego": []byte("a")})
	parts := Parts(string(manifest))
	if len(parts) != 1 || parts[0].Name != "a.rego" || parts[0].ConfigMap != "one" || !parts[0].Is("a") || parts[0].Is("b") {
		t.Errorf("%+v", parts)
	}
	if broken := Parts("files: {"); broken != nil {
		t.Errorf("%+v", broken)
	}
}
