// SPDX-License-Identifier: Apache-2.0

package explorer_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalaw/metalaw/test/explorer"
)

// bundles are the shipped ones, whichever there are.
var bundles = func() []string {
	folders, err := filepath.Glob("../../policies/bundles/*/lifecycle.yaml")
	if err != nil || len(folders) == 0 {
		panic("no bundle is shipped")
	}
	for i, f := range folders {
		folders[i] = filepath.Base(filepath.Dir(f))
	}
	return folders
}()

// whole says that everything is to be proved, however long that takes.
func whole() bool { return os.Getenv("MUTANTS") == "all" }

// A server is handed to somebody outside by the state's name alone, so that a bundle without it must not touch it.
func TestAParkedMachineIsLeftAloneByABundleWithoutThatState(t *testing.T) {
	m, err := explorer.Load(map[string][]byte{"bundle.yaml": nil, "lifecycle.yaml": []byte(`
initial: Shelf
define:
  asked: operation.name == "retry"
states:
  Shelf:
    means: Shows where it is.
    stable: true
    ensure: [Locate]
    exits:
    - {rule: Taken, to: Desk, when: asked}
  Desk:
    means: Looked at.
    stable: true
    exits:
    - {rule: Seen, to: Shelf, when: "!asked"}
`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range m.Explore(explorer.Options{Worlds: 100_000, Disturbances: 1}).Violations {
		if v.Rule == explorer.HandsOff && strings.Contains(v.Text, "handed to somebody outside") {
			t.Errorf("%s", v)
		}
	}
}

func TestTheShippedBundlesBreakNothing(t *testing.T) {
	o := explorer.Quick
	if whole() {
		o = explorer.Thorough
	}
	for _, name := range bundles {
		t.Run(name, func(t *testing.T) {
			m, err := explorer.Load(shipped(t, name))
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			r := m.Explore(o)
			t.Logf("%d worlds and %d steps in %s; complete up to %d disturbances: %t; random walks from seed %d",
				r.Worlds, r.Steps, time.Since(began).Round(time.Millisecond), o.Disturbances, r.Complete, o.Seed)
			for _, v := range r.Violations {
				t.Errorf("%s", v)
			}
			for _, s := range m.States() {
				if !r.States[s] {
					t.Errorf("no history leads to %s, so that nothing was judged there", s)
				}
			}
		})
	}
}
