// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/engine/bundle"
)

// former are revisions as the build before the deletions stored them: the packed content by the name of the object.
func former(t *testing.T) map[string]bundle.Files {
	t.Helper()
	paths, err := filepath.Glob("testdata/former/*.json.gz")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no stored revisions: %v", err)
	}
	all := map[string]bundle.Files{}
	for _, path := range paths {
		packed, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files, err := bundle.Unpack(packed)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".json.gz")] = files
	}
	return all
}

// A revision that has another name would be another one: its servers would move. One with an error could govern nothing: they would halt.
func TestARevisionOfTheFormerBuildLoadsUnderItsNameAndWithoutAnError(t *testing.T) {
	for name, files := range former(t) {
		t.Run(name, func(t *testing.T) {
			b, found, err := bundle.Compile(files, Vocabulary())
			if err != nil || found.HasErrors() {
				t.Fatal(err, found)
			}
			if b.Revision.Name != name {
				t.Errorf("it is named %s now", b.Revision.Name)
			}
			if b.Selection == nil || b.Admission == nil || b.Lifecycle == nil || b.MACs == nil {
				t.Errorf("a part is missing: %+v", b)
			}
		})
	}
}

// The former build accepted values of up to 4096 computed parts, and types that took it seconds to compare.
func TestRegoAtTheLimitsOfTheFormerBuildLoads(t *testing.T) {
	chain := func(of string, n int, step string) string {
		text := fmt.Sprintf("\t%s0 := input.candidate.name\n", of)
		for i := range n {
			text += fmt.Sprintf("\t"+step+"\n", of, i+1, i)
		}
		return text
	}
	const twice, once = "%[1]s%[2]d := [%[1]s%[3]d, %[1]s%[3]d]", "%[1]s%[2]d := [%[1]s%[3]d]"
	for name, rule := range map[string]string{
		"a value that holds 4096 parts":           "allow if {\n" + chain("a", 12, twice) + "\tcount(a12) == 2\n}\n",
		"two values of 1024 parts compared":       "allow if {\n" + chain("a", 10, twice) + chain("b", 10, twice) + "\ta10 == b10\n}\n",
		"two lists that are twenty deep compared": "allow if {\n" + chain("a", 20, once) + chain("b", 20, once) + "\ta20 == b20\n}\n",
	} {
		t.Run(name, func(t *testing.T) {
			files, err := Shipped(DefaultBundle)
			if err != nil {
				t.Fatal(err)
			}
			files[bundle.SelectionFile] = []byte("package metalaw.selection\n\n" + rule)
			if _, found, err := bundle.Compile(files, Vocabulary()); err != nil || found.HasErrors() {
				t.Errorf("%v\n%v", err, found)
			}
		})
	}
}
