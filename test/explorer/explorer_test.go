// SPDX-License-Identifier: Apache-2.0

package explorer_test

import (
	"os"
	"path/filepath"
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
