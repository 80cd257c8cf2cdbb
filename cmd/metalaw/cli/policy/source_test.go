// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// head is a ConfigMap with one file of its own, at a depth that an author may choose.
const head = `apiVersion: v1
kind: Namespace
metadata: {name: metalaw-system}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: lab-1.0.0
  labels: {policy.metalaw.dev/bundle: lab}
data:
  bundle.yaml: |
    apiVersion: policy.metalaw.dev/v1alpha1
    kind: Bundle
    name: lab
    version: 1.0.0
    setings: {}
`

func TestAConfigMapIsReadWithThePlacesOfItsOwnFile(t *testing.T) {
	out, err := call(t, head, "verify", "-f", "-")
	want := `standard input:16:5: error: the bundle has no key "setings" [yaml-unknown-key]`
	if !errors.Is(err, terminal.ErrIncomplete) || !strings.Contains(out, want) {
		t.Errorf("%v\n%s\nwant:\n%s", err, out, want)
	}
	out, err = call(t, strings.Replace(head, "setings", "settings", 1), "verify", "-f", "-")
	if err != nil || !strings.Contains(out, "accepted: bundle lab 1.0.0") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestManifestsThatWereJoinedWithoutASeparatorAreToldSo(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"two objects": {strings.Replace(head, "---\n", "", 1),
			`standard input:4:1: error: the key "apiVersion" stands in line 1 already [yaml-duplicate-key]`},
		"two files in one object": {head + "  bundle.yaml: x\n",
			`standard input:17:3: error: the key "bundle.yaml" stands in line 11 already [yaml-duplicate-key]`},
	} {
		want := c.want + "\n    where another object begins here, put --- before it\n"
		if out, err := call(t, c.text, "verify", "-f", "-"); !errors.Is(err, terminal.ErrIncomplete) || !strings.HasPrefix(out, want) {
			t.Errorf("%s: %v\n%s\nwant:\n%s", name, err, out, want)
		}
	}
	other := "apiVersion: v1\nkind: Secret\ndata: text\n---\n" + strings.Replace(head, "setings", "settings", 1)
	if out, err := call(t, other, "verify", "-f", "-"); err != nil {
		t.Errorf("another object is passed over: %v\n%s", err, out)
	}
}

func TestVerifyRefusesInADirectoryWhatAdmissionRefusesInAConfigMap(t *testing.T) {
	const digest = "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
	for name, c := range map[string]struct{ file, text, want string }{
		"another ending":         {"macprefixes.yml", "x: 1", "nothing reads a file of this name [file-unknown]\n    did you mean macprefixes.yaml?"},
		"another word":           {"select.rego", "package x", "nothing reads a file of this name [file-unknown]\n    did you mean selection.rego?"},
		"a letter that is wrong": {"lifecyle.yaml", "x: 1", "nothing reads a file of this name [file-unknown]\n    did you mean lifecycle.yaml?"},
		"notes":                  {"notes.txt", "x", "nothing reads a file of this name [file-unknown]\n    known files: bundle.yaml,"},
		"UTF-16":                 {"scenarios.yaml", "\xff\xfe[\x00]\x00", "scenarios.yaml:1:1: error: the file is UTF-16 text [file-encoding]"},
		"UTF-16 without a mark":  {"scenarios.yaml", "[\x00]\x00", "scenarios.yaml:1:2: error: the file is UTF-16 text [file-encoding]"},
		"Latin-1":                {"admission.rego", "package a\n# gr\xf6\xdfer\n", "admission.rego:2:5: error: from here on the file is no UTF-8 text [file-encoding]"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := begun(t, "default")
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := call(t, "", "verify", "-f", dir)
			if !errors.Is(err, terminal.ErrIncomplete) || !strings.Contains(out, c.want) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	dir := begun(t, "default")
	list := "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Manifest\nfiles:\n- {name: macprefixes.yaml, configMap: macs, digest: \"" + digest + "\"}\n"
	for file, text := range map[string]string{"manifest.yaml": list, "README.md": "x", ".swp": "x", "README": "x"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := call(t, "", "verify", "-f", dir)
	if want := filepath.Join(dir, "manifest.yaml") + ":4:3: error: macprefixes.yaml: macprefixes.yaml in ConfigMap macs has digest"; !errors.Is(err,
		terminal.ErrIncomplete) || !strings.HasPrefix(out, want) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestOneInterruptEndsACommandThatWaitsForItsInput(t *testing.T) {
	silent, typist := io.Pipe()
	t.Cleanup(func() { typist.Close() }) //nolint:errcheck // It has no error.
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, verb := range []string{"verify", "test", "render", "vap"} {
		_, _, err := callReading(ctx, silent, verb, "-f", "-")
		if err == nil || err.Error() != "interrupted before the input had ended" || usage.ExitCode(err) != usage.ExitIncomplete {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

func TestAFindingAboutAWholeFileOfAConfigMapNamesTheFileAtItsKey(t *testing.T) {
	sound := strings.Replace(head, "setings", "settings", 1)
	part := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: macs, labels: {policy.metalaw.dev/bundle-part: lab}}\ndata:\n  notes.txt: x\n"
	listing := "  manifest.yaml: |\n    apiVersion: policy.metalaw.dev/v1alpha1\n    kind: Manifest\n    files:\n" +
		"    - {name: notes.txt, configMap: macs, digest: \"sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881\"}\n"
	for name, c := range map[string]struct{ text, want string }{
		"as a block":     {sound + "  notes.txt: |\n    x\n", "standard input:17:3: error: notes.txt: nothing reads a file of this name [file-unknown]"},
		"quoted":         {sound + "  notes.txt:\n    \"x\"\n", "standard input:17:3: error: notes.txt: nothing reads a file of this name [file-unknown]"},
		"that is merged": {sound + "  <<: {notes.txt: x}\n", "standard input:17:19: error: notes.txt: nothing reads a file of this name [file-unknown]"},
		"of a part":      {sound + listing + part, "standard input:27:3: error: notes.txt: nothing reads a file of this name [file-unknown]"},
		"of JSON": {`{"kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"lab-1.0.0","labels":{"policy.metalaw.dev/bundle":"lab"}},
"data":{"bundle.yaml":"name: lab\nversion: 1.0.0\n","notes.txt":"x"}}]}`,
			"standard input:2:53: error: notes.txt: nothing reads a file of this name [file-unknown]"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := call(t, c.text, "verify", "-f", "-"); !errors.Is(err, terminal.ErrIncomplete) || !strings.HasPrefix(out, c.want) {
				t.Errorf("%v\n%s\nwant:\n%s", err, out, c.want)
			}
			if out, err := call(t, c.text, "verify", "-f", "-", "-o", "sarif"); !errors.Is(err, terminal.ErrIncomplete) ||
				!strings.Contains(out, `"text": "notes.txt: nothing reads a file of this name (`) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestAPartInAnotherNamespaceIsMissing(t *testing.T) {
	const digest = "sha256:e74738fba209ae1bddbc719b60f5195194164ea7e59e847cdc68a4ad43fe5690"
	in := func(namespace, object string) string {
		if namespace == "" {
			return object
		}
		return strings.Replace(object, "metadata: {", "metadata: {namespace: "+namespace+", ", 1)
	}
	bundleOf := func(namespace string) string {
		return in(namespace, `apiVersion: v1
kind: ConfigMap
metadata: {name: lab-1.0.0, labels: {policy.metalaw.dev/bundle: lab}}
data:
  bundle.yaml: |
    apiVersion: policy.metalaw.dev/v1alpha1
    kind: Bundle
    name: lab
    version: 1.0.0
  manifest.yaml: |
    apiVersion: policy.metalaw.dev/v1alpha1
    kind: Manifest
    files:
    - {name: macprefixes.yaml, configMap: macs, digest: "`+digest+`"}
---
`)
	}
	part := func(namespace, text string) string {
		return in(namespace, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: macs, labels: {policy.metalaw.dev/bundle-part: lab}}\ndata:\n"+
			"  macprefixes.yaml: |\n    "+text+"\n---\n")
	}
	const sound, other = "macPrefixes: []", "macPrefixes: [] # of another"
	const missing = "standard input:14:7: error: macprefixes.yaml: ConfigMap macs does not hold macprefixes.yaml"
	for name, c := range map[string]struct{ text, want string }{
		"in another": {bundleOf("x") + part("y", sound), missing + ": the one here is in namespace y, and the bundle in x [manifest-part-missing]\n" +
			"    apply it, in the same namespace and with the label policy.metalaw.dev/bundle-part\n"},
		"in none":                               {bundleOf("x"), missing + " [manifest-part-missing]"},
		"in the same":                           {bundleOf("x") + part("x", sound), "standard input, ConfigMap lab-1.0.0: accepted"},
		"in the same, another after it":         {bundleOf("x") + part("x", sound) + part("y", other), "standard input, ConfigMap lab-1.0.0: accepted"},
		"in one that may be the same":           {bundleOf("x") + part("", sound), "standard input, ConfigMap lab-1.0.0: accepted"},
		"where that of the bundle is not known": {bundleOf("") + part("y", sound), "standard input, ConfigMap lab-1.0.0: accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, _ := call(t, c.text, "verify", "-f", "-"); !strings.HasPrefix(out, c.want) {
				t.Errorf("%s\nwant:\n%s", out, c.want)
			}
		})
	}
}

// listed is a list of objects as kubectl prints them.
const listed = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: lab-1.0.0
    labels: {policy.metalaw.dev/bundle: lab}
  data:
    bundle.yaml: |
      name: lab
      version: 1.0.0
      setings: {}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: of-another, labels: {x: y}}
  binaryData: {x: AAA=}
`

func TestTheListThatKubectlPrintsIsOpened(t *testing.T) {
	out, err := call(t, listed, "verify", "-f", "-")
	want := `standard input:13:7: error: the bundle has no key "setings" [yaml-unknown-key]`
	if !errors.Is(err, terminal.ErrIncomplete) || !strings.Contains(out, want) {
		t.Errorf("%v\n%s\nwant:\n%s", err, out, want)
	}
	out, err = call(t, strings.Replace(listed, "  data:\n", "  binaryData: {x: AAA=}\n  data:\n", 1), "verify", "-f", "-")
	want = "standard input:9:19: error: ConfigMap lab-1.0.0 has x under binaryData"
	if !errors.Is(err, terminal.ErrIncomplete) || !strings.Contains(out, want) {
		t.Errorf("%v\n%s\nwant:\n%s", err, out, want)
	}
}

func TestInQuotedTextBothPlacesAreTold(t *testing.T) {
	quoted := "{\n  \"apiVersion\": \"v1\", \"kind\": \"ConfigMap\",\n  \"metadata\": {\"name\": \"lab-1.0.0\", \"labels\": {\"policy.metalaw.dev/bundle\": \"lab\"}},\n" +
		`  "data": {"bundle.yaml": "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: lab\nversion: 1.0.0\nsetings: {}\n"}` + "\n}\n"
	out, err := call(t, quoted, "verify", "-f", "-")
	want := `standard input:4:27: error: bundle.yaml:5:1: the bundle has no key "setings" [yaml-unknown-key]`
	if !errors.Is(err, terminal.ErrIncomplete) || !strings.Contains(out, want) {
		t.Errorf("%v\n%s\nwant:\n%s", err, out, want)
	}
	// The indicator says how far the block is indented; what its first line is indented further belongs to the text.
	indented := strings.NewReplacer("bundle.yaml: |\n", "bundle.yaml: |2\n", "    apiVersion: policy", "      # ours\n    apiVersion: policy").Replace(head)
	out, err = call(t, indented, "verify", "-f", "-")
	want = `standard input:17:5: error: the bundle has no key "setings" [yaml-unknown-key]`
	if !errors.Is(err, terminal.ErrIncomplete) || !strings.Contains(out, want) {
		t.Errorf("%v\n%s\nwant:\n%s", err, out, want)
	}
}

// labelled is head as a whole bundle with other labels.
func labelled(name, stage string) string {
	return strings.NewReplacer("setings", "settings", "{policy.metalaw.dev/bundle: lab}",
		"{policy.metalaw.dev/bundle: "+name+", policy.metalaw.dev/stage: "+stage+"}").Replace(head)
}

func TestVerifyRefusesTheLabelsThatAdmissionRefuses(t *testing.T) {
	for name, c := range map[string]struct{ typed, want string }{
		"a stage that there is not": {labelled("lab", "live"), `standard input:9:70: error: ConfigMap lab-1.0.0: label policy.metalaw.dev/stage is "live" ` +
			"[label-stage]\n    there are draft, shadow, canary, active"},
		"the name of another bundle": {labelled("other", "active"), `standard input:9:39: error: ConfigMap lab-1.0.0: label policy.metalaw.dev/bundle says ` +
			`"other" and bundle.yaml names the bundle "lab" [label-bundle]` + "\n    write the same name in both"},
		"a canary without a scope": {labelled("lab", "canary"), "standard input:5:1: error: ConfigMap lab-1.0.0: annotation policy.metalaw.dev/servers: " +
			"a canary says whom it governs"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := call(t, c.typed, "verify", "-f", "-")
			if !errors.Is(err, terminal.ErrIncomplete) || !strings.Contains(out, c.want) || strings.Contains(out, "accepted:") {
				t.Errorf("%v\n%s", err, out)
			}
			out, err = call(t, strings.Replace(c.typed, "settings: {}", "setings: {}", 1), "verify", "-f", "-", "-o", "sarif")
			if !errors.Is(err, terminal.ErrIncomplete) || !strings.Contains(out, "yaml-unknown-key") || !strings.Contains(out, "ConfigMap lab-1.0.0") {
				t.Errorf("beside the findings of its content: %v\n%s", err, out)
			}
			if _, err := call(t, c.typed, "render", "-f", "-"); err != nil {
				t.Errorf("it can be drawn all the same: %v", err)
			}
		})
	}
}

func TestVerifyWarnsOfTheLabelsThatAdmissionWarnsOf(t *testing.T) {
	want := `standard input:9:39: warning: ConfigMap lab-1.0.0: label policy.metalaw.dev/bundle says "other" and bundle.yaml names the bundle "lab" ` +
		"[label-bundle]\n    write the same name in both\n"
	for name, typed := range map[string]string{
		"a draft":         labelled("other", "draft"),
		"without a stage": strings.NewReplacer("setings", "settings", "bundle: lab}", "bundle: other}").Replace(head),
	} {
		out, err := call(t, typed, "verify", "-f", "-")
		if err != nil || !strings.Contains(out, want) || !strings.Contains(out, "accepted: bundle lab 1.0.0") {
			t.Errorf("%s: %v\n%s\nwant:\n%s", name, err, out, want)
		}
	}
}

func TestWhatIsNoBundleIsSaidInOneSentence(t *testing.T) {
	empty := t.TempDir()
	for name, c := range map[string]struct {
		typed string
		args  []string
		want  string
		usage bool
	}{
		"nothing named":         {"", []string{"verify"}, "which bundle?", true},
		"two named":             {"", []string{"verify", "-f", "x", "--from", "default"}, "give -f or --from, not both", true},
		"no such file":          {"", []string{"verify", "-f", "nowhere"}, "there is no file or directory nowhere", true},
		"an empty directory":    {"", []string{"render", "-f", empty}, "holds no file of a bundle", false},
		"no bundle in a stream": {"kind: Pod\n", []string{"render", "-f", "-"}, "holds no bundle", false},
		"no such shipped one":   {"", []string{"render", "--from", "none"}, `there is no shipped bundle "none"; there are compat-v0.7, default, no-discovery`, true},
		"no such topic":         {"", []string{"schema", "x"}, "name one topic: admission, bundle,", true},
		"no such form":          {"", []string{"verify", "-f", "-", "-o", "xml"}, `"xml" is none of text, json, yaml, sarif`, true},
		"a stage unknown":       {"", []string{"promote", "x", "--stage", "on"}, "there are draft, shadow, canary and active", true},
		"a canary of nobody":    {"", []string{"promote", "x", "--stage", "canary"}, "whom does the canary govern?", true},
		"a scope without need":  {"", []string{"promote", "x", "--percent", "5"}, "belong to --stage canary", true},
		"a verb unknown":        {"", []string{"verfy"}, `there is no verb "verfy"`, true},
		"a name that cannot be": {"", []string{"init", "Fleet"}, `"Fleet" cannot be the name of a bundle`, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := call(t, c.typed, c.args...)
			if err == nil || !strings.Contains(err.Error(), c.want) || usage.Is(err) != c.usage {
				t.Errorf("%v (usage: %t)", err, usage.Is(err))
			}
		})
	}
}

func TestWhatAKustomizationMakesIsVerifiedFromItsOutput(t *testing.T) {
	const output = `apiVersion: v1
data:
  bundle.yaml: |
    apiVersion: policy.metalaw.dev/v1alpha1
    kind: Bundle
    name: lab
    version: 1.0.0
kind: ConfigMap
metadata:
  labels:
    policy.metalaw.dev/bundle: lab
  name: lab-1.0.0-78277f76cm
  namespace: metalaw-system
`
	if out, err := call(t, output, "verify", "-f", "-"); err != nil || !strings.Contains(out, "accepted: bundle lab 1.0.0") {
		t.Errorf("%v\n%s", err, out)
	}
	misspelt := strings.Replace(output, "    version: 1.0.0\n", "    version: 1.0.0\n    setings: {}\n", 1)
	want := `standard input:8:5: error: the bundle has no key "setings" [yaml-unknown-key]`
	if out, err := call(t, misspelt, "verify", "-f", "-"); !errors.Is(err, terminal.ErrIncomplete) || !strings.Contains(out, want) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestADirectoryWithAKustomizationIsToldTheCommandThatVerifiesIt(t *testing.T) {
	overlay := t.TempDir()
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte("resources: [../fleet]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(dir string) string { return "`kubectl kustomize " + dir + " | metalaw policy verify -f -`\n" }
	out, err := call(t, "", "verify", "-f", overlay)
	if !errors.Is(err, terminal.ErrIncomplete) || !strings.Contains(out, "the directory holds no file of a bundle") || !strings.Contains(out, command(overlay)) {
		t.Errorf("an overlay without files: %v\n%s", err, out)
	}
	dir := begun(t, "default")
	if out, err := call(t, "", "verify", "-f", dir); err != nil || !strings.HasSuffix(out, command(dir)) {
		t.Errorf("a bundle with a kustomization: %v\n%s", err, out)
	}
}
