// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
)

// shippedFiles reads a shipped bundle.
func shippedFiles(t testing.TB, name string) bundle.Files {
	t.Helper()
	files, err := Shipped(name)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func acceptance(t testing.TB) bundle.Options {
	return Acceptance(shippedFiles(t, DefaultBundle))
}

func TestEveryShippedBundleIsAccepted(t *testing.T) {
	for _, name := range ShippedNames() {
		t.Run(name, func(t *testing.T) {
			// Held to itself as well as to the default: what a shipped bundle takes over unchanged is proven once more.
			in := Acceptance(nil)
			b, report, err := bundle.Accept(t.Context(), shippedFiles(t, name), in)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range report.Found {
				if d.Severity != diag.Info && d.Code != "mac-inline-credentials" {
					t.Error(d)
				}
			}
			if b == nil || b.Name != name {
				t.Fatalf("got %+v", b)
			}
			c := report.Coverage
			t.Logf("%d scenarios, %d tests; %d of %d rules, %d of %d effects, %d of %d lines; not shown: %v", len(report.Scenarios), len(report.Tests),
				c.Exercised, c.Rules, c.Shown, c.Effects, c.Evaluated, c.Lines, c.MissedEffects)
		})
	}
}

// BenchmarkAccept accepts the shipped bundles with all their tests.
func BenchmarkAccept(b *testing.B) {
	for _, name := range ShippedNames() {
		files, in := shippedFiles(b, name), acceptance(b)
		b.Run("bundle="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if accepted, report, err := bundle.Accept(b.Context(), files, in); err != nil || accepted == nil {
					b.Fatal(err, report.Found)
				}
			}
		})
	}
}
