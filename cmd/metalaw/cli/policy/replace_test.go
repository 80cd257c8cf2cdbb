// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// filesIn are the files of a directory with what they hold.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(data)
	}
	return files
}

func TestFilesAreReplacedAllOrNone(t *testing.T) {
	for name, c := range map[string]struct {
		second string
		want   map[string]string
		fails  bool
	}{
		"all":                              {"b", map[string]string{"a": "new", "b": "new"}, false},
		"none, where one has no directory": {"gone/b", map[string]string{"a": "old"}, true},
		"none, where one is not to be written to": {"locked", map[string]string{"a": "old", "locked": "old"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, mode := range map[string]os.FileMode{"a": 0o600, "locked": 0o400} {
				if file == "a" || c.second == file {
					if err := os.WriteFile(filepath.Join(dir, file), []byte("old"), mode); err != nil {
						t.Fatal(err)
					}
				}
			}
			err := replaceAll([]content{{filepath.Join(dir, "a"), []byte("new")}, {filepath.Join(dir, c.second), []byte("new")}})
			if (err != nil) != c.fails {
				t.Errorf("error: %v", err)
			}
			if diff := cmp.Diff(c.want, filesIn(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAddLeavesAloneWhatAManifestListsWithItsDigest(t *testing.T) {
	dir := begun(t, "default")
	selection, err := os.ReadFile(filepath.Join(dir, "selection.rego"))
	if err != nil {
		t.Fatal(err)
	}
	manifest := fmt.Sprintf("apiVersion: policy.metalaw.dev/v1alpha1\nkind: Manifest\nfiles:\n- {name: selection.rego, configMap: big, digest: \"sha256:%x\"}\n",
		sha256.Sum256(selection))
	if err := os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	before := filesIn(t, dir)
	_, err = call(t, "", "add", dir, "best-fit")
	if want := filepath.Join(dir, "manifest.yaml") + ": it lists selection.rego, which would change"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(before, filesIn(t, dir)); diff != "" {
		t.Error(diff)
	}
}
