// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/sha256"
	"errors"
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

func TestFilesThatWereReplacedAreRestoredWhereALaterOneCannotBe(t *testing.T) {
	dir := t.TempDir()
	a, fresh, last := filepath.Join(dir, "a"), filepath.Join(dir, "fresh"), filepath.Join(dir, "last")
	for _, file := range []string{a, last} {
		if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("broken")
	err := replaceBy(func(from, to string) error {
		if to == last {
			return broken
		}
		return os.Rename(from, to)
	}, []content{{a, []byte("new")}, {fresh, []byte("new")}, {last, []byte("new")}})
	if !errors.Is(err, broken) || err.Error() != "broken" {
		t.Errorf("error: %v", err)
	}
	if diff := cmp.Diff(map[string]string{"a": "old", "last": "old"}, filesIn(t, dir)); diff != "" {
		t.Error(diff)
	}
	if mode := modeOf(t, a); mode != 0o600 {
		t.Errorf("mode %v", mode)
	}
}

func TestAFileThatIsReplacedKeepsItsModeAndTheLinksToIt(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	shared, link, fresh := filepath.Join(elsewhere, "shared"), filepath.Join(dir, "link"), filepath.Join(dir, "fresh")
	if err := os.WriteFile(shared, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(shared, link); err != nil {
		t.Fatal(err)
	}
	if err := replaceAll([]content{{link, []byte("new")}, {fresh, []byte("new")}}); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != shared {
		t.Errorf("it leads to %q: %v", to, err)
	}
	if got := text(t, shared); got != "new" {
		t.Errorf("the file holds %q", got)
	}
	if got := []os.FileMode{modeOf(t, shared), modeOf(t, fresh)}; got[0] != 0o600 || got[1] != 0o644 {
		t.Errorf("modes %v", got)
	}
}

func modeOf(t *testing.T, file string) os.FileMode {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
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
