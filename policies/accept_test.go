// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

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

func TestABundleIsWarnedOfWhatItsNamesMean(t *testing.T) {
	replaced := func(files bundle.Files, file, old, instead string) {
		files[file] = regexp.MustCompile(old).ReplaceAll(files[file], []byte(instead))
	}
	for name, c := range map[string]struct {
		change func(bundle.Files)
		want   []string
	}{
		"of nothing, in a bundle with a name of its own": {func(files bundle.Files) { replaced(files, "bundle.yaml", `(?m)^name: .*$`, "name: fleet") }, nil},
		"of the name of the default": {func(files bundle.Files) { replaced(files, "bundle.yaml", `(?m)^version: .*$`, "version: 99.0.0") }, []string{
			`bundle.yaml:4:7: warning: "default" is the name of a bundle that is built into metalaw, of which this becomes another version ` +
				`(take a name of your own, so that history, metrics and the right to activate tell the two apart) [bundle-name-built-in]`}},
		"of the name of another that is built in": {func(files bundle.Files) { replaced(files, "bundle.yaml", `(?m)^name: .*$`, "name: compat-v0.7") }, []string{
			`bundle.yaml:4:7: warning: "compat-v0.7" is the name of a bundle that is built into metalaw, of which this becomes another version ` +
				`(take a name of your own, so that history, metrics and the right to activate tell the two apart) [bundle-name-built-in]`}},
		"of a state Error that has another name": {func(files bundle.Files) {
			replaced(files, "bundle.yaml", `(?m)^name: .*$`, "name: fleet")
			for _, file := range []string{"lifecycle.yaml", "scenarios.yaml"} {
				replaced(files, file, `\bError\b`, "Broken")
				replaced(files, file, `(parkedFrom\W+)Broken`, "${1}Error") // a word of the fact
			}
		}, []string{`lifecycle.yaml:52:3: warning: there is no state Error, so that canary.maxErrors bounds nothing: a canary is paused by halts alone ` +
			`(name the state Error to which servers go that an operator has to look at) [canary-errors-unbounded]`}},
		"of a state Reserved that has another name": {func(files bundle.Files) {
			replaced(files, "bundle.yaml", `(?m)^name: .*$`, "name: fleet")
			for _, file := range []string{"lifecycle.yaml", "scenarios.yaml"} {
				replaced(files, file, `\bReserved\b`, "InUse")
			}
		}, []string{`lifecycle.yaml:52:3: warning: there is no state Reserved, so that no claim is ever Bound ` +
			`(name the state Reserved in which servers boot and run what their claims ask for) [state-name-expected]`}},
	} {
		t.Run(name, func(t *testing.T) {
			files := shippedFiles(t, DefaultBundle)
			c.change(files)
			_, report, err := Accept(t.Context(), files)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range report.Found {
				if d.Severity != diag.Info {
					got = append(got, d.String())
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
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
