// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
)

const (
	codeKustomizationForm = "kustomization-form"
	codeKustomizationFile = "kustomization-file"
	codeKustomizationName = "kustomization-name"
)

// kustomizationFiles are the names that kustomize looks for, in its order.
var kustomizationFiles = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// kustomization is what one says of the ConfigMaps that it makes of files.
type kustomization struct {
	Common generatorOptions `yaml:"generatorOptions"`
	Makes  []generator      `yaml:"configMapGenerator"`
}

type generatorOptions struct {
	Labels map[string]yaml.Node `yaml:"labels"`
}

type generator struct {
	Name  yaml.Node   `yaml:"name"`
	Files []yaml.Node `yaml:"files"`
	// Literals are KEY=VALUE, and Envs files of those.
	Literals []yaml.Node      `yaml:"literals"`
	Envs     []yaml.Node      `yaml:"envs"`
	Options  generatorOptions `yaml:"options"`
}

// listing is how a generator lists a file: PATH, or KEY=PATH.
func listing(n yaml.Node) (key, path string) {
	key, path, renamed := strings.Cut(n.Value, "=")
	if !renamed {
		key, path = filepath.Base(n.Value), n.Value
	}
	return key, filepath.Clean(path)
}

// holds says that a generator makes a ConfigMap with a file.
func (g generator) holds(file string) bool {
	return slices.ContainsFunc(g.Files, func(n yaml.Node) bool { key, _ := listing(n); return key == file })
}

// label is a label of what a generator makes; empty where it has none.
func (k kustomization) label(g generator, key string) yaml.Node {
	if own, ok := g.Options.Labels[key]; ok {
		return own
	}
	return k.Common.Labels[key]
}

// judgeKustomization compares the directory, whose files are judged, with the ConfigMap that `kubectl apply -k` makes of it. The findings
// are warnings, because a kustomization elsewhere may say otherwise.
func (m *manuscript) judgeKustomization() (diag.List, error) {
	if m.dir == "" {
		return nil, nil
	}
	for _, name := range kustomizationFiles {
		path := filepath.Join(m.dir, name)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		m.at[name] = origin{path: path}
		text, wrong, err := readFile(path)
		if wrong != nil {
			wrong.Severity, wrong.File = diag.Warning, name
			return diag.List{*wrong}, nil
		}
		if err != nil {
			return nil, err
		}
		var k kustomization
		if err := yaml.Unmarshal(text, &k); err != nil {
			return diag.List{{Severity: diag.Warning, Code: codeKustomizationForm, File: name,
				Message: fmt.Sprintf("it cannot be read: %v", err), Hint: "see what `kubectl kustomize " + m.dir + "` says"}}, nil
		}
		return m.compare(name, k), nil
	}
	return nil, nil
}

// compare finds what differs between the directory and what its kustomization makes; nothing where that makes no bundle.
func (m *manuscript) compare(name string, k kustomization) diag.List {
	head := slices.IndexFunc(k.Makes, func(g generator) bool { return k.label(g, bundleLabel).Value != "" || g.holds(bundle.BundleFile) })
	if head < 0 {
		return nil
	}
	var found diag.List
	warn := func(n yaml.Node, code, message, hint string) {
		found = append(found, diag.Diagnostic{Severity: diag.Warning, Code: code, File: name, Line: n.Line, Column: n.Column,
			Message: message, Hint: hint})
	}
	listed := map[string]bool{}
	for i, g := range k.Makes {
		if i != head && k.label(g, partLabel).Value == "" {
			continue
		}
		for _, n := range g.Files {
			key, path := listing(n)
			listed[key] = true
			if message, hint := m.judgeEntry(key, path); message != "" {
				warn(n, codeKustomizationFile, message, hint)
			}
		}
		for _, n := range slices.Concat(g.Literals, g.Envs) {
			warn(n, codeKustomizationFile, "it adds to the ConfigMap what is in no file of the directory, and was not judged here",
				"keep each file of the bundle in the directory and list it under files")
		}
	}
	for _, file := range slices.Sorted(slices.Values(m.own)) {
		if !listed[file] {
			warn(k.Makes[head].Name, codeKustomizationFile, fmt.Sprintf("it does not list %s, which was judged here and which the ConfigMap that "+
				"`kubectl apply -k` makes will not hold", file), "add it to files, or delete the file")
		}
	}
	m.judgeNames(k, k.Makes[head], warn)
	return found
}

// judgeEntry says what is wrong with a file that is listed.
func (m *manuscript) judgeEntry(key, path string) (message, hint string) {
	_, err := os.Stat(filepath.Join(m.dir, path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("it lists %s, which is not there, so that `kubectl apply -k` fails", path),
			"take the file out of the list, or put it back"
	case err != nil:
		return fmt.Sprintf("it lists %s, which cannot be looked at: %v", path, err), "list files of the directory"
	case beside(key):
		return fmt.Sprintf("it puts %s into the ConfigMap, which is no file of a bundle, so that the ConfigMap is refused", key),
			"take the file out of the list"
	case path != key:
		return fmt.Sprintf("it makes %s of %s, which was not judged here", key, path),
			"keep it as " + key + " in the directory, or judge what is applied: kubectl kustomize " + m.dir + " | metalaw policy verify -f -"
	}
	return "", ""
}

// versionIn is the version at the end of the name of a ConfigMap, as `policy init` gives it.
var versionIn = regexp.MustCompile(`-(\d+\.\d+\.\d+([-.].*)?)$`)

// judgeNames compares the label and the name of the ConfigMap with what bundle.yaml says.
func (m *manuscript) judgeNames(k kustomization, head generator, warn func(n yaml.Node, code, message, hint string)) {
	is := selfIn(m.files)
	if label := k.label(head, bundleLabel); label.Value != "" && is.Name != "" && label.Value != is.Name {
		warn(label, codeKustomizationName, fmt.Sprintf("label %s says %q and %s names the bundle %q", bundleLabel, label.Value, bundle.BundleFile,
			is.Name), "write the same name in both")
	}
	in := versionIn.FindStringSubmatch(head.Name.Value)
	if version := strings.ToLower(strings.ReplaceAll(is.Version, "+", "-")); in != nil && version != "" && in[1] != version {
		warn(head.Name, codeKustomizationName, fmt.Sprintf("it calls the ConfigMap %s and %s says version %s: this would change the ConfigMap of "+
			"the other version, which is refused once that has left the stage draft", head.Name.Value, bundle.BundleFile, is.Version),
			"call it "+strings.TrimSuffix(head.Name.Value, in[1])+version)
	}
}

// self is what a bundle says that it is; empty where that cannot be read, which the acceptance of the bundle tells.
type self struct{ Name, Version string }

func selfIn(files bundle.Files) self {
	var is self
	if yaml.Unmarshal(files[bundle.BundleFile], &is) != nil {
		return self{}
	}
	return is
}
