// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bound is how long one mutant may take, with its build.
const bound = 5 * time.Minute

// root is the root of the module, from this package.
const root = "../.."

func TestEveryMutantStillFitsTheSource(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			if _, err := m.changed(); err != nil {
				t.Error(err)
			}
			if !m.hasTest(t) {
				t.Errorf("no file of %s has the test %s", m.in, m.test)
			}
		})
	}
}

func TestEveryMutantFails(t *testing.T) {
	if os.Getenv("MUTANTS") != "all" {
		t.Skip("each takes a build: make test-mutants")
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			output, err := m.try(t)
			switch failed := strings.Contains(output, "--- FAIL: "+m.test); {
			case err == nil:
				t.Errorf("%s passes", m.test)
			case !failed:
				t.Errorf("%s did not run: %v\n%s", m.test, err, output)
			}
		})
	}
}

// changed is the file with the change.
func (m mutant) changed() ([]byte, error) {
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(source, []byte(m.from)); n != 1 {
		return nil, fmt.Errorf("%s has %q %d times, want once: adapt the mutant", m.file, m.from, n)
	}
	return bytes.Replace(source, []byte(m.from), []byte(m.to), 1), nil
}

// hasTest says that a file of the package declares the test.
func (m mutant) hasTest(t *testing.T) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, m.in, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(source, []byte("\nfunc "+m.test+"(t *testing.T) {")) {
			return true
		}
	}
	return false
}

// try runs the test on an overlay of the tree, which stays as it is.
func (m mutant) try(t *testing.T) (output string, err error) {
	t.Helper()
	source, err := m.changed()
	if err != nil {
		t.Fatal(err)
	}
	absolute, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mutated, overlay := filepath.Join(dir, filepath.Base(m.file)), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {absolute: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{mutated: source, overlay: text} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	run := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-timeout=2m",
		"-overlay="+overlay, "-run=^"+m.test+"$", m.in)
	run.Dir = root
	told, err := run.CombinedOutput()
	return string(told), err
}
