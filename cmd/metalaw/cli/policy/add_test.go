// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/policies/library"
)

func text(t *testing.T, parts ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestAddWritesAPolicyThatIsAcceptedAndListed(t *testing.T) {
	dir := begun(t, "default")
	out, err := call(t, "", "add", dir, "reserve-per-zone", "wear-levelling", "--set", "reserve-per-zone.percent=20")
	if err != nil {
		t.Fatal(err, out)
	}
	for _, want := range []string{"reserve-per-zone.rego: written", "reserve-per-zone_test.rego: written", "selection.rego: rule added",
		"selection.rego: points added to score", "kustomization.yaml: lists the new files"} {
		if !strings.Contains(out, filepath.Join(dir, want)) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if got := text(t, dir, "reserve-per-zone.rego"); !strings.Contains(got, "\npercent := 20\n") {
		t.Error(got)
	}
	if got := text(t, dir, "kustomization.yaml"); !strings.Contains(got, "  - bundle.yaml\n  - reserve-per-zone.rego\n") || !strings.Contains(got, "  - wear-levelling_test.rego\n") {
		t.Error(got)
	}
	if out, err := call(t, "", "verify", "-f", dir); err != nil || !strings.Contains(out, "accepted: bundle fleet 0.1.0") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := call(t, "", "add", dir, "reserve-per-zone", "wear-levelling"); err != nil || out != "nothing to do: the bundle has all of it already\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

// The namespace that the documentation uses is a likely one.
func TestAddLimitsTheImagesOfTheDocumentedNamespace(t *testing.T) {
	out, err := call(t, "", "add", begun(t, "default"), "images-per-namespace", "--set", `images={"team": ["registry.example.com/other/*"]}`)
	if err != nil || !strings.Contains(out, "images-per-namespace.rego: written") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAddTakesWhatItNeedsFromTheDefault(t *testing.T) {
	dir := begun(t, "default")
	for _, file := range []string{"selection.rego", "selection_test.rego"} {
		if err := os.Remove(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := call(t, "", "add", dir, "best-fit")
	if err != nil || !strings.Contains(out, "selection.rego: taken from the built-in default") || !strings.Contains(text(t, dir, "selection.rego"), "best_fit.points") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAddWritesNothingWhereItCannotDoAll(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"parameters that make no sense": {[]string{"reserve-per-zone", "--set", "percent=250"}, "nothing was written: the values of parameters of policy reserve-per-zone do not fit"},
		"a test of the bundle's own that does not hold any more": {[]string{"images-per-namespace", "--set", `others=["registry.example.com/none"]`},
			"nothing was written; tests that the bundle had before (admission_test.rego) do not hold with the policy"},
		"a parameter that is not there": {[]string{"best-fit", "wear-levelling", "--set", "wear-levelling.wait=1"}, "policy wear-levelling has no parameter"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := begun(t, "default")
			before := text(t, dir, "selection.rego")
			out, err := call(t, "", append([]string{"add", dir}, c.args...)...)
			if err == nil || usage.Is(err) || !strings.Contains(out+err.Error(), c.want) {
				t.Errorf("%v\n%s", err, out)
			}
			left, _ := filepath.Glob(filepath.Join(dir, "*-*.rego"))
			if len(left) > 0 || text(t, dir, "selection.rego") != before {
				t.Errorf("something was written: %v", left)
			}
		})
	}
}

func TestAddSaysWhatItWouldDo(t *testing.T) {
	dir := begun(t, "default")
	out, err := call(t, "", "add", dir, "best-fit", "--dry-run")
	if err != nil || !strings.Contains(out, "best-fit.rego: written") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "best-fit.rego")); err == nil || strings.Contains(text(t, dir, "kustomization.yaml"), "best-fit") {
		t.Error("a dry run wrote something")
	}
}

func TestAddRefusesACommandLineThatMakesNoSense(t *testing.T) {
	dir := begun(t, "default")
	for name, args := range map[string][]string{
		"no policy":                         {dir},
		"a policy that is not there":        {dir, "best-fitt"},
		"no bundle":                         {filepath.Join(dir, "nowhere"), "best-fit"},
		"a parameter of which policy":       {dir, "best-fit", "wear-levelling", "--set", "weight=1"},
		"a parameter of a policy not meant": {dir, "best-fit", "--set", "wear-levelling.weight=1"},
		"a parameter without a value":       {dir, "best-fit", "--set", "weight"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := call(t, "", append([]string{"add"}, args...)...); !usage.Is(err) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestAddListsTheLibrary(t *testing.T) {
	out, err := call(t, "", "add")
	for _, name := range library.Names() {
		if err != nil || !strings.Contains(out, name) {
			t.Errorf("%s is not listed: %v\n%s", name, err, out)
		}
	}
}
