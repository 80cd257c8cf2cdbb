// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine/lifecycle"
)

// FuzzCheck checks all that compiles, as written or made up of a seed: it must not panic, must say the same twice, and
// must show facts only in states that the lifecycle has.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(fleet), int64(0))
	for seed := range int64(5) {
		f.Add([]byte(nil), seed)
	}
	f.Add([]byte("apiVersion: policy.metalaw.dev/v1alpha1\nkind: Lifecycle\ninitial: A\ndefine:\n"+
		"  a: hardware.cores - hardware.disks > 9223372036854775807 || hardware.cores < -9223372036854775808\n"+
		"  b: hardware.model == bmc.power || hardware.model in [\"\", \"some other\"] || \"x\" in [hardware.model]\n"+
		"states:\n  A:\n    means: A.\n    stable: true\n    exits:\n    - {rule: Self, to: A, when: a && b, retry: true}\n"), int64(0))
	f.Fuzz(func(t *testing.T, data []byte, seed int64) {
		if len(data) == 0 { // a random lifecycle instead, most of which compile
			data = []byte(author{rand.New(rand.NewSource(seed))}.lifecycle(slices.Concat(parts, opaqueParts)))
		}
		l, _, err := lifecycle.Compile("lifecycle.yaml", data, words())
		if err != nil {
			t.Fatal(err)
		}
		if l == nil {
			return
		}
		first := check(l, 1<<16, nil)
		if diff := cmp.Diff(said(first), said(check(l, 1<<16, nil))); diff != "" {
			t.Errorf("two checks differ:\n%s", diff)
		}
		for _, found := range first.Findings {
			if x := found.Counterexample; x != nil && !l.Defines(x.State) {
				t.Error(fmt.Sprint(found))
			}
		}
	})
}
