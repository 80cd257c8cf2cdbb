// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/diag"
)

func TestVerifyTellsWhereAKustomizationMakesAnotherBundleThanWasJudged(t *testing.T) {
	remove := func(file string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
		}
	}
	list := func(old, instead string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { edit(t, filepath.Join(dir, "kustomization.yaml"), old, instead) }
	}
	write := func(t *testing.T, dir, file, text string) {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change func(*testing.T, string)
		want   string
	}{
		"as init writes it": {func(*testing.T, string) {}, ""},
		"a file that is not listed": {list("  - macprefixes.yaml\n", ""),
			"kustomization.yaml:8:9: warning: it does not list macprefixes.yaml, which was judged here and which the ConfigMap that " +
				"`kubectl apply -k` makes will not hold [kustomization-file]\n    add it to files, or delete the file\n"},
		"a file that is listed and deleted": {remove("macprefixes.yaml"),
			"kustomization.yaml:19:5: warning: it lists macprefixes.yaml, which is not there, so that `kubectl apply -k` fails [kustomization-file]\n" +
				"    take the file out of the list, or put it back\n"},
		"a file that is deleted from both": {func(t *testing.T, dir string) {
			remove("macprefixes.yaml")(t, dir)
			list("  - macprefixes.yaml\n", "")(t, dir)
		}, ""},
		"a file that readers alone read": {func(t *testing.T, dir string) {
			write(t, dir, "README.md", "For people.\n")
			list("  - macprefixes.yaml\n", "  - macprefixes.yaml\n  - README.md\n")(t, dir)
		}, "kustomization.yaml:20:5: warning: it puts README.md into the ConfigMap, which is no file of a bundle, so that the ConfigMap is refused " +
			"[kustomization-file]\n    take the file out of the list\n"},
		"a file from elsewhere": {func(t *testing.T, dir string) {
			write(t, filepath.Dir(dir), "macs.yaml", "")
			list("  - macprefixes.yaml\n", "  - macprefixes.yaml=../macs.yaml\n")(t, dir)
		}, "kustomization.yaml:19:5: warning: it lists ../macs.yaml, which is outside of the directory, so that `kubectl apply -k` fails " +
			"[kustomization-file]\n    keep a copy of it in the directory\n"},
		"a link that leads elsewhere": {func(t *testing.T, dir string) {
			write(t, filepath.Dir(dir), "macs.yaml", "macPrefixes: []\n")
			remove("macprefixes.yaml")(t, dir)
			if err := os.Symlink("../macs.yaml", filepath.Join(dir, "macprefixes.yaml")); err != nil {
				t.Skip(err)
			}
		}, "kustomization.yaml:19:5: warning: it lists macprefixes.yaml, which is outside of the directory"},
		"a file by the way to the directory itself": {list("  - macprefixes.yaml\n", "  - ../fleet/macprefixes.yaml\n"), ""},
		"a file from the network": {list("  - macprefixes.yaml\n", "  - https://example.com/macprefixes.yaml\n"),
			"kustomization.yaml:19:5: warning: it makes macprefixes.yaml of https://example.com/macprefixes.yaml, which is not looked at here " +
				"[kustomization-file]\n    keep it in the directory, or judge what is applied: kubectl kustomize "},
		"a directory": {func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, "macs"), 0o700); err != nil {
				t.Fatal(err)
			}
			list("  - macprefixes.yaml\n", "  - macprefixes.yaml=macs\n")(t, dir)
		}, "kustomization.yaml:19:5: warning: it lists macs, which is a directory, so that `kubectl apply -k` fails [kustomization-file]\n"},
		"a file that is listed twice": {list("  - macprefixes.yaml\n", "  - macprefixes.yaml\n  - ./macprefixes.yaml\n"),
			"kustomization.yaml:20:5: warning: it gives macprefixes.yaml twice, so that `kubectl apply -k` fails [kustomization-file]\n" +
				"    take one of the two out\n"},
		"a file that another file is made of": {list("  - macprefixes.yaml\n", "  - macprefixes.yaml=bundle.yaml\n"),
			"kustomization.yaml:19:5: warning: it makes macprefixes.yaml of bundle.yaml, which was not judged here [kustomization-file]\n"},
		"an entry of no form": {list("  - macprefixes.yaml\n", "  - macprefixes.yaml=\n"),
			"kustomization.yaml:19:5: warning: it lists what is no PATH and no KEY=PATH, so that `kubectl apply -k` fails [kustomization-file]\n"},
		"a file that cannot be looked at": {list("  - macprefixes.yaml\n", "  - macprefixes.yaml\n  - bundle.yaml/x\n"),
			"kustomization.yaml:20:5: warning: it lists bundle.yaml/x, which cannot be looked at: "},
		"what is in no file": {list("  files:\n", "  literals:\n  - other.rego=package x\n  files:\n"),
			"kustomization.yaml:15:5: warning: it adds to the ConfigMap what is in no file of the directory, and was not judged here " +
				"[kustomization-file]\n    keep each file of the bundle in the directory and list it under files\n"},
		"what is in no file and in one": {list("  files:\n", "  literals:\n  - bundle.yaml=x\n  files:\n"),
			"kustomization.yaml:15:5: warning: it gives bundle.yaml twice, so that `kubectl apply -k` fails [kustomization-file]\n"},
		"a file of such": {list("  files:\n", "  envs: [.a]\n  files:\n"), "kustomization.yaml:14:10: warning: it adds to the ConfigMap what is in no file"},
		"a file of such, as it was once written": {list("  files:\n", "  env: .a\n  files:\n"),
			"kustomization.yaml:14:8: warning: it adds to the ConfigMap what is in no file of the directory"},
		"a version that is raised in the bundle alone": {func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, "bundle.yaml"), "version: 0.1.0", "version: 0.2.0+b1")
		}, "kustomization.yaml:8:9: warning: it calls the ConfigMap fleet-0.1.0 and bundle.yaml says version 0.2.0+b1: this would change the ConfigMap " +
			"of the other version, which is refused once that has left the stage draft [kustomization-name]\n    call it fleet-0.2.0-b1\n"},
		"a name without a version": {list("- name: fleet-0.1.0\n", "- name: fleet\n"), ""},
		"the label of another bundle": {list("policy.metalaw.dev/bundle: fleet\n", "policy.metalaw.dev/bundle: lab\n"),
			"kustomization.yaml:12:34: warning: label policy.metalaw.dev/bundle says \"lab\" and bundle.yaml names the bundle \"fleet\" " +
				"[kustomization-name]\n    write the same name in both\n"},
		"no label": {list("      policy.metalaw.dev/bundle: fleet\n", ""),
			"kustomization.yaml:8:9: warning: it makes no bundle: ConfigMap fleet-0.1.0, which holds bundle.yaml, has no label " +
				"policy.metalaw.dev/bundle [kustomization-name]\n    give it the label, with the name in bundle.yaml\n"},
		"a stage that there is not": {list("stage: draft", "stage: live"),
			"kustomization.yaml:13:33: warning: label policy.metalaw.dev/stage is \"live\" [kustomization-name]\n    there are draft, shadow, canary, active\n"},
		"a canary of nobody": {list("stage: draft", "stage: canary"),
			"kustomization.yaml:8:9: warning: annotation policy.metalaw.dev/servers: a canary says whom it governs"},
		"a canary of somebody": {func(t *testing.T, dir string) {
			list("stage: draft", "stage: canary")(t, dir)
			list("kind: Kustomization\n", "kind: Kustomization\ncommonAnnotations: {policy.metalaw.dev/percent: \"5\"}\n")(t, dir)
		}, ""},
		"a stage in two places": {list("kind: Kustomization\n", "kind: Kustomization\nlabels:\n- pairs: {policy.metalaw.dev/stage: active}\n"),
			"kustomization.yaml:7:37: warning: label policy.metalaw.dev/stage becomes \"active\" by this, and the generator says \"draft\" " +
				"[kustomization-name]\n    say it in one place\n"},
		"a stage of the generator before that of all": {list("kind: Kustomization\n",
			"kind: Kustomization\ngeneratorOptions: {labels: {policy.metalaw.dev/stage: active}}\n"), ""},
		"the label of another bundle for all": {list("kind: Kustomization\n", "kind: Kustomization\ncommonLabels: {policy.metalaw.dev/bundle: lab}\n"),
			"kustomization.yaml:6:43: warning: label policy.metalaw.dev/bundle says \"lab\" and bundle.yaml names the bundle \"fleet\" [kustomization-name]\n"},
		"another namespace": {list("namespace: metalaw-system\n", "namespace: other\n"),
			"kustomization.yaml:6:12: warning: it makes the ConfigMap in the namespace other, and a bundle means nothing outside of the manager's, which is " +
				"metalaw-system unless that was moved [kustomization-name]\n    write namespace: metalaw-system\n"},
		"another namespace of the generator": {func(t *testing.T, dir string) {
			list("namespace: metalaw-system\n", "")(t, dir)
			list("- name: fleet-0.1.0\n", "- name: fleet-0.1.0\n  namespace: other\n")(t, dir)
		}, "kustomization.yaml:8:14: warning: it makes the ConfigMap in the namespace other, "},
		"the namespace of all before that of the generator": {list("- name: fleet-0.1.0\n", "- name: fleet-0.1.0\n  namespace: other\n"), ""},
		"a name with a prefix": {list("kind: Kustomization\n", "kind: Kustomization\nnamePrefix: prod-\n"),
			"kustomization.yaml:6:13: warning: the ConfigMap is called prod-fleet-0.1.0 by this, and the generator says fleet-0.1.0 [kustomization-name]\n" +
				"    write the whole name there\n"},
		"a name with a suffix": {list("kind: Kustomization\n", "kind: Kustomization\nnameSuffix: -b\n"),
			"kustomization.yaml:6:13: warning: it calls the ConfigMap fleet-0.1.0-b and bundle.yaml says version 0.1.0: "},
		"no name": {list("- name: fleet-0.1.0\n  options:\n", "- options:\n"),
			"kustomization.yaml:8:3: warning: it makes a ConfigMap without a name, so that `kubectl apply -k` fails [kustomization-form]\n"},
		"two of one name": {list("configMapGenerator:\n", "configMapGenerator:\n- name: fleet-0.1.0\n"),
			"kustomization.yaml:9:9: warning: it makes ConfigMap fleet-0.1.0 twice, so that `kubectl apply -k` fails [kustomization-form]\n"},
		"a behavior": {list("- name: fleet-0.1.0\n", "- name: fleet-0.1.0\n  behavior: merge\n"),
			"kustomization.yaml:9:13: warning: behavior merge changes a ConfigMap that a resource makes, which is not compared here; where none does, " +
				"`kubectl apply -k` fails [kustomization-form]\n"},
		"patches": {list("kind: Kustomization\n", "kind: Kustomization\npatches: [{path: x.yaml}]\n"),
			"kustomization.yaml:6:1: warning: what patches changes is not compared here [kustomization-form]\n    judge what is applied: kubectl kustomize "},
		"no patches": {list("kind: Kustomization\n", "kind: Kustomization\npatches: []\n"), ""},
		"components": {list("kind: Kustomization\n", "kind: Kustomization\ncomponents: [https://example.com/c]\n"),
			"kustomization.yaml:6:1: warning: what components changes is not compared here [kustomization-form]\n"},
		"a resource from elsewhere": {list("kind: Kustomization\n", "kind: Kustomization\nresources:\n- github.com/example/base\n"),
			"kustomization.yaml:7:3: warning: github.com/example/base is no file of the directory, and what it brings is not compared here " +
				"[kustomization-form]\n    judge what is applied: kubectl kustomize "},
		"a resource of the directory": {func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, "roles"), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, dir, "roles/author.yaml", "")
			list("kind: Kustomization\n", "kind: Kustomization\nresources: [roles/author.yaml]\n")(t, dir)
		}, ""},
		"a Secret": {list("configMapGenerator:\n", "secretGenerator:\n"),
			"kustomization.yaml:8:9: warning: it makes a Secret of the files, and a bundle is a ConfigMap [kustomization-form]\n"},
		"another generator of bundle.yaml": {list("configMapGenerator:\n", "configMapGenerator:\n- {name: x, files: [bundle.yaml]}\n"), ""},
		"a key that there is not": {list("configMapGenerator:\n", "configMapGenerators:\n"),
			"kustomization.yaml:7:1: warning: it cannot be read: invalid Kustomization: json: unknown field \"configMapGenerators\" [kustomization-form]\n" +
				"    see what `kubectl kustomize "},
		"another kind": {list("kind: Kustomization\n", "kind: Kustomisation\n"),
			"kustomization.yaml:5:7: warning: it cannot be read: kind should be Kustomization or Component [kustomization-form]\n"},
		"an empty kustomization": {func(t *testing.T, dir string) { write(t, dir, "kustomization.yaml", "") },
			"kustomization.yaml: warning: it cannot be read: kustomization.yaml is empty [kustomization-form]\n"},
		"two kustomizations": {func(t *testing.T, dir string) { write(t, dir, "Kustomization", "") },
			"Kustomization: warning: kustomization.yaml is there as well, so that `kubectl apply -k` fails [kustomization-form]\n    keep one of the two\n"},
		"labels for all that is made": {func(t *testing.T, dir string) {
			list("    labels:\n      policy.metalaw.dev/bundle: fleet\n", "    labels:\n")(t, dir)
			list("configMapGenerator:\n", "generatorOptions: {labels: {policy.metalaw.dev/bundle: fleet}}\nconfigMapGenerator:\n")(t, dir)
		}, ""},
		"a kustomization of other things": {func(t *testing.T, dir string) {
			write(t, dir, "kustomization.yaml", "resources: [namespace.yaml]\nconfigMapGenerator:\n- {name: x, files: [absent.txt]}\n")
		}, ""},
		"a kustomization that is none": {func(t *testing.T, dir string) { write(t, dir, "kustomization.yaml", "configMapGenerator: {}\n") },
			"kustomization.yaml: warning: it cannot be read: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := begun(t, "default")
			c.change(t, dir)
			m, err := readDirectory(dir)
			if err != nil {
				t.Fatal(err)
			}
			found, err := m.judgeKustomization()
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			for _, d := range found {
				if err := finding(&terminal.Terminal{Out: &out}, m.placed(d)); err != nil || d.Severity != diag.Warning {
					t.Error(err, d)
				}
			}
			if got := out.String(); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

func TestFilesThatAManifestListsBelongIntoTheConfigMapThatItNames(t *testing.T) {
	const (
		manifest = "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Manifest\nfiles:\n- name: macprefixes.yaml\n  configMap: fleet-macs\n  digest: %s\n"
		part     = "- name: fleet-macs\n  options: {disableNameSuffixHash: true, labels: {policy.metalaw.dev/bundle-part: fleet}}\n  files: [macprefixes.yaml]\n"
	)
	for name, c := range map[string]struct {
		manifest, head bool
		part           string
		want           string
	}{
		"in its part": {manifest: true, part: part},
		"in its part, whose name comes from all": {manifest: true, part: strings.Replace(part, "disableNameSuffixHash: true, ", "", 1) +
			"generatorOptions: {disableNameSuffixHash: true}\n"},
		"in the head": {manifest: true, head: true, want: "kustomization.yaml:20:5: warning: it puts macprefixes.yaml into the head, and manifest.yaml lists it in " +
			"ConfigMap fleet-macs, so that the bundle is refused [kustomization-file]\n    take it out here, and list it in a generator of ConfigMap fleet-macs\n"},
		"in nothing": {manifest: true, want: "kustomization.yaml:8:9: warning: it does not make ConfigMap fleet-macs with macprefixes.yaml, as manifest.yaml lists it: the " +
			"bundle is not whole where that is not stored already [kustomization-file]\n    list the file in a generator of this name, with " +
			"disableNameSuffixHash: true and the label policy.metalaw.dev/bundle-part: fleet\n"},
		"in a part with a hash in its name": {manifest: true, part: strings.Replace(part, "disableNameSuffixHash: true, ", "", 1),
			want: "kustomization.yaml:8:9: warning: it does not make ConfigMap fleet-macs with macprefixes.yaml, "},
		"in the part of another bundle": {manifest: true, part: strings.Replace(part, "part: fleet", "part: lab", 1),
			want: "kustomization.yaml:8:9: warning: it does not make ConfigMap fleet-macs with macprefixes.yaml, "},
		"in a part without a manifest": {part: part, want: "kustomization.yaml:24:11: warning: it puts macprefixes.yaml into ConfigMap fleet-macs, and manifest.yaml does " +
			"not list it there, so that the bundle is without it [kustomization-file]\n    list it there with its digest, or here among the files of fleet-0.1.0\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := begun(t, "default")
			file := filepath.Join(dir, "kustomization.yaml")
			macs, err := os.ReadFile(filepath.Join(dir, "macprefixes.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if !c.head {
				edit(t, file, "  - macprefixes.yaml\n", "")
			}
			if c.manifest {
				text := fmt.Sprintf(manifest, fmt.Sprintf("sha256:%x", sha256.Sum256(macs)))
				if err := os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				edit(t, file, "  - lifecycle.yaml\n", "  - lifecycle.yaml\n  - manifest.yaml\n")
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, append(text, c.part...), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := call(t, "", "verify", "-f", dir)
			if err != nil || !strings.Contains(out, ": accepted: bundle fleet ") || !strings.Contains(out, c.want) ||
				c.want == "" && strings.Contains(out, "warning:") {
				t.Errorf("%v\n%s\nwant:\n%s", err, out, c.want)
			}
		})
	}
}
