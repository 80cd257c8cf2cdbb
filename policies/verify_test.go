// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"

	"github.com/metalaw/metalaw/engine/lifecycle/verify"
)

func TestX(t *testing.T) {
	r := verify.Check(defaultLifecycle(t))
	for _, f := range r.Findings {
		t.Log(f.Diagnostic.String())
		if f.Counterexample != nil {
			t.Log("    ", f.Counterexample, f.Counterexample.Confirmed, f.Counterexample.Decision)
		}
	}
	t.Log(r.Undecided)
}

func BenchmarkVerify(b *testing.B) {
	l := defaultLifecycle(b)
	b.Run("bundle=default", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			verify.Check(l)
		}
	})
}
