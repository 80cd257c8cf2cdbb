// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		}, "kustomization.yaml:19:5: warning: it makes macprefixes.yaml of ../macs.yaml, which was not judged here [kustomization-file]\n"},
		"a file that cannot be looked at": {list("  - macprefixes.yaml\n", "  - macprefixes.yaml\n  - bundle.yaml/x\n"),
			"kustomization.yaml:20:5: warning: it lists bundle.yaml/x, which cannot be looked at: "},
		"what is in no file": {list("  - macprefixes.yaml\n", "  - macprefixes.yaml\n  literals:\n  - selection.rego=package x\n"),
			"kustomization.yaml:21:5: warning: it adds to the ConfigMap what is in no file of the directory, and was not judged here " +
				"[kustomization-file]\n    keep each file of the bundle in the directory and list it under files\n"},
		"a version that is raised in the bundle alone": {func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, "bundle.yaml"), "version: 0.1.0", "version: 0.2.0+b1")
		}, "kustomization.yaml:8:9: warning: it calls the ConfigMap fleet-0.1.0 and bundle.yaml says version 0.2.0+b1: this would change the ConfigMap " +
			"of the other version, which is refused once that has left the stage draft [kustomization-name]\n    call it fleet-0.2.0-b1\n"},
		"a name without a version": {list("- name: fleet-0.1.0\n", "- name: fleet\n"), ""},
		"the label of another bundle": {list("policy.metalaw.dev/bundle: fleet\n", "policy.metalaw.dev/bundle: lab\n"),
			"kustomization.yaml:12:34: warning: label policy.metalaw.dev/bundle says \"lab\" and bundle.yaml names the bundle \"fleet\" " +
				"[kustomization-name]\n    write the same name in both\n"},
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
			out, err := call(t, "", "verify", "-f", dir)
			if err != nil || !strings.Contains(out, ": accepted: bundle fleet ") {
				t.Errorf("%v\n%s", err, out)
			}
			if !strings.Contains(out, c.want) || c.want == "" && strings.Contains(out, "warning:") {
				t.Errorf("got:\n%s\nwant:\n%s", out, c.want)
			}
		})
	}
}

func TestFilesThatAManifestListsAreListedByTheGeneratorOfTheirConfigMap(t *testing.T) {
	dir := begun(t, "default")
	file := filepath.Join(dir, "kustomization.yaml")
	edit(t, file, "  - macprefixes.yaml\n", "")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	part := "- name: fleet-macs\n  options: {labels: {policy.metalaw.dev/bundle-part: fleet}}\n  files: [macprefixes.yaml]\n"
	if err := os.WriteFile(file, append(text, part...), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := call(t, "", "verify", "-f", dir)
	if err != nil || strings.Contains(out, "warning:") {
		t.Errorf("%v\n%s", err, out)
	}
}
