// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/engine/bundle"
)

var keep = flag.Bool("keep", false, "write the shipped bundles into former, as the first step to a new version")

func TestTheShippedVersionCanBeKept(t *testing.T) {
	for _, name := range ShippedNames() {
		files := shippedFiles(t, name)
		packed, err := files.Pack()
		if err != nil {
			t.Fatal(err)
		}
		again, err := bundle.Unpack(packed)
		if err != nil || again.Digest() != files.Digest() {
			t.Fatalf("%s becomes another bundle: %v", name, err)
		}
		b, _, err := bundle.Compile(files, Vocabulary())
		if err != nil {
			t.Fatal(err)
		}
		if *keep {
			if err := os.WriteFile(filepath.Join("former", b.Revision.Name+packedSuffix), packed, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// formerly gives the bundles of earlier builds by the name of their revision.
func formerly(t *testing.T) map[string]bundle.Files {
	t.Helper()
	all, err := Former()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Each change of a shipped bundle raises its version, and the former one is kept: a fleet that promoted nothing is governed by it.
func TestEachShippedBundleHasAVersionOfItsOwn(t *testing.T) {
	got := map[string]string{}
	for name := range formerly(t) {
		got[name] = "former"
	}
	for _, name := range ShippedNames() {
		files, err := Shipped(name)
		if err != nil {
			t.Fatal(err)
		}
		b, found, err := bundle.Compile(files, Vocabulary())
		if err != nil || found.HasErrors() {
			t.Fatal(err, found)
		}
		got[b.Revision.Name] = "shipped"
	}
	want := map[string]string{
		"compat-v0.7-1.0.0-790a9f8387": "former", "compat-v0.7-1.0.0-dc4eda21a0": "former", "compat-v0.7-1.1.0-023dbdffc8": "former",
		"compat-v0.7-1.2.0-1fad30325d": "former", "compat-v0.7-1.3.0-4a73b1cf1f": "shipped",
		"default-1.0.0-ef12f5a6b5": "former", "default-1.0.0-9e2d2d5d15": "former", "default-1.1.0-26dcc35f3e": "former",
		"default-1.2.0-e921d4fa2c": "former", "default-1.3.0-5658ee057b": "shipped",
		"no-discovery-1.0.0-15053a1c78": "former", "no-discovery-1.0.0-abe7e51d75": "former", "no-discovery-1.1.0-9ceb24460d": "former",
		"no-discovery-1.2.0-2c18d05d46": "former", "no-discovery-1.3.0-e1c578e028": "shipped",
	}
	if !maps.Equal(got, want) {
		t.Errorf("a changed bundle needs a new version, and its former content in policies/former:\n got %v\nwant %v", got, want)
	}
}

// A revision that has another name would be another one: its servers would move. One with an error could govern nothing: they would halt.
func TestARevisionOfTheFormerBuildLoadsUnderItsNameAndWithoutAnError(t *testing.T) {
	for name, files := range formerly(t) {
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

// At start the manager accepts each stored revision, and an error would halt its servers.
func TestWhatAFormerBuildShippedIsAccepted(t *testing.T) {
	for name, files := range formerly(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, report, err := Accept(t.Context(), files); err != nil || report.Found.HasErrors() {
				t.Error(err, report.Found)
			}
		})
	}
}

// A former build took any word that a rule of admission.rego asks of an object. A check of such words warns of stored content only.
func TestAFormerBundleWithTypingMistakesIsAccepted(t *testing.T) {
	files, err := Shipped(DefaultBundle)
	if err != nil {
		t.Fatal(err)
	}
	files["admission.rego"] = append(files["admission.rego"], "\n"+
		"deny contains {\"code\": \"typo\", \"message\": \"never\"} if {\n"+
		"\tinput.kind == \"ServerClaim\"\n\tinput.object.spec.imgae == \"none\"\n\tinput.object.metadata.lables.team == \"none\"\n}\n"...)
	files["admission_test.rego"] = append(files["admission_test.rego"], "\n"+
		"test_typo if {\n\tcount(data.metalaw.admission.deny) == 1 with input as {\"kind\": \"ServerClaim\", "+
		"\"object\": {\"spec\": {\"imgae\": \"none\"}, \"metadata\": {\"lables\": {\"team\": \"none\"}}}}\n}\n"...)
	if _, report, err := Accept(t.Context(), files); err != nil || report.Found.HasErrors() {
		t.Error(err, report.Found)
	}
}

// A setting that a former bundle does not have keeps what it did.
func TestAFormerBundleKeepsWhatItsWipeDid(t *testing.T) {
	for name, files := range formerly(t) {
		b, found, err := bundle.Compile(files, Vocabulary())
		if err != nil || found.HasErrors() {
			t.Fatal(err, found)
		}
		if !strings.Contains(name, "-1.0.0-") {
			continue // it has the settings
		}
		w := b.Settings.Wipe
		if w.Hidden != bundle.HiddenReport || w.Removable != bundle.RemovableLeave || w.Identity != bundle.IdentityReport {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

// A fleet of emulated BMCs that an earlier build found is found by this one.
func TestTheFormerDefaultsKnowTheEmulatorAndTheShippedOneDoesNot(t *testing.T) {
	all := formerly(t)
	all["shipped"] = shippedFiles(t, DefaultBundle)
	for name, files := range all {
		b, found, err := bundle.Compile(files, Vocabulary())
		if err != nil || found.HasErrors() {
			t.Fatal(err, found)
		}
		if _, known := b.MACs.Lookup("02:4d:4c:00:00:01"); known != (name != "shipped") {
			t.Errorf("%s: known is %v", name, known)
		}
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
