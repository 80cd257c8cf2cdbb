// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"
	"time"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
)

// BenchmarkDecide evaluates the default lifecycle on facts whose age changes every time.
func BenchmarkDecide(b *testing.B) {
	compiled, err := Default()
	if err != nil {
		b.Fatal(err)
	}
	for _, state := range []string{"Available", "Reserved", "Discovery"} {
		b.Run("bundle=default/state="+state, func(b *testing.B) {
			o := Observation{Server: held(), Claim: web("1", "r1"), Now: noon, Settings: compiled.Settings,
				System: SystemReading{Reachable: true, Power: "Off", Health: "OK", Identity: IdentitySame}}
			if state != "Reserved" {
				o.Server.Spec.ServerClaimRef = nil
			}
			f := o.Facts()
			f.Lifecycle.State, f.Lifecycle.Marks = state, []string{MarkManaged}
			if state == "Reserved" {
				f.Lifecycle.Marks = []string{MarkDirty, MarkManaged}
			}
			b.ReportAllocs()
			for b.Loop() {
				f.Lifecycle.Age += time.Millisecond
				if d := compiled.Decide(f); d.Halt != nil || d.Moves() {
					b.Fatalf("%+v", d)
				}
				if f.Lifecycle.Age > 10*time.Minute {
					f.Lifecycle.Age = 0
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, name := range ShippedNames() {
		files := shippedFiles(b, name)
		compiles := func(b *testing.B, words *engine.Vocabulary) {
			b.Helper()
			if _, found, err := bundle.Compile(files, words); err != nil || found.Err() != nil {
				b.Fatal(err, found)
			}
		}
		b.Run("bundle="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				compiles(b, Vocabulary())
			}
		})
		b.Run("first/bundle="+name, func(b *testing.B) { // with what is made of the vocabulary once in a process
			b.ReportAllocs()
			for b.Loop() {
				compiles(b, buildVocabulary())
			}
		})
	}
}
