// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/cmd/internal/usage"
)

func TestExamplesAreThoseOfWhatIsTold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "examples.yaml")
	_, said, err := callBoth(t, "", "verify", "--from", "default", "--examples", file)
	if want := file + " is not written: no finding that is told has an example\n"; err != nil || said != want {
		t.Errorf("%v, %q", err, said)
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("where there are none, a file is written: %v", err)
	}
	if _, said, err := callBoth(t, "", "verify", "--from", "default", "--notes", "--examples", file); err != nil || said != "" {
		t.Errorf("%v, %q", err, said)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "order-decides: ") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestExamplesOverwriteNoFile(t *testing.T) {
	dir := begun(t, "default")
	link := filepath.Join(t.TempDir(), "nowhere.yaml")
	if err := os.Symlink("not-there.yaml", link); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ args []string }{
		"the bundle's own scenarios":            {[]string{filepath.Join(dir, "scenarios.yaml"), "--notes"}},
		"a file, where there are none to write": {[]string{filepath.Join(dir, "lifecycle.yaml")}},
		"a directory":                           {[]string{dir, "--notes"}},
		"a link that leads nowhere":             {[]string{link, "--notes"}},
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := os.ReadFile(c.args[0])
			out, err := call(t, "", append([]string{"verify", "-f", dir, "--examples"}, c.args...)...)
			want := "--examples " + c.args[0] + ": it is there already and is not overwritten; nothing was judged or written. Name a file that is not there yet"
			if !usage.Is(err) || err.Error() != want || out != "" {
				t.Errorf("%v\n%s", err, out)
			}
			if after, _ := os.ReadFile(c.args[0]); string(after) != string(before) {
				t.Errorf("the file was changed:\n%s", after)
			}
		})
	}
	if _, err := os.Stat(link); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was written through a link: %v", err)
	}
}

func TestExamplesAreWrittenToStreams(t *testing.T) {
	for path, want := range map[string]bool{"/dev/stdout": true, "/dev/stderr": false, "/dev/null": false} {
		out, said, err := callBoth(t, "", "verify", "--from", "default", "--notes", "--examples", path)
		if err != nil || strings.HasPrefix(out, "apiVersion: ") != want || strings.HasPrefix(said, "apiVersion: ") != (path == "/dev/stderr") {
			t.Errorf("%s: %v\n%s\n%s", path, err, out, said)
		}
	}
}
