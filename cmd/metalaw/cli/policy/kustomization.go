// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/metalaw/metalaw/engine/diag"
)

const (
	codeKustomizationForm = "kustomization-form"
	codeKustomizationFile = "kustomization-file"
	codeKustomizationName = "kustomization-name"
)

// kustomizationFiles are the names that kustomize looks for, in its order.
var kustomizationFiles = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// kustomization is what one says, as kustomize itself reads it, and where it says it. What it makes of files is told from that, and it is
// not built: a build clones what is remote, and the packages that build would make this program a third larger (with the package plugin, the
// linker keeps every method).
type kustomization struct {
	types.Kustomization
	root *yaml.Node
}

// judgeKustomization compares the directory, whose files are judged, with the ConfigMap that `kubectl apply -k` makes of it. The findings
// are warnings, because a kustomization elsewhere may say otherwise.
func (m *manuscript) judgeKustomization() (diag.List, error) {
	if m.dir == "" {
		return nil, nil
	}
	var names []string
	for _, name := range kustomizationFiles {
		if _, err := os.Lstat(filepath.Join(m.dir, name)); !errors.Is(err, fs.ErrNotExist) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	name := names[len(names)-1]
	path := filepath.Join(m.dir, name)
	m.at[name] = origin{path: path}
	if len(names) > 1 {
		return diag.List{{Severity: diag.Warning, Code: codeKustomizationForm, File: name,
			Message: names[0] + " is there as well, so that `kubectl apply -k` fails", Hint: "keep one of the two"}}, nil
	}
	text, wrong, err := readFile(path)
	if wrong != nil {
		wrong.Severity, wrong.File = diag.Warning, name
		return diag.List{*wrong}, nil
	}
	if err != nil {
		return nil, err
	}
	c := comparison{m: m, file: name}
	var at *yaml.Node
	if c.k, at, err = parseKustomization(text); err != nil {
		c.warnf(at, codeKustomizationForm, "see what `kubectl kustomize "+m.dir+"` says", "it cannot be read: %v", err)
	} else {
		c.compare()
	}
	return c.found, nil
}

// unknownKey is how kustomize names a key that it does not have.
var unknownKey = regexp.MustCompile(`unknown field "([^"]+)"`)

// parseKustomization reads a kustomization; at is where it is wrong, nil where that is not known.
func parseKustomization(text []byte) (k kustomization, at *yaml.Node, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return k, nil, err
	}
	k.root = placeOf(&doc)
	if err := k.Unmarshal(text); err != nil {
		if in := unknownKey.FindStringSubmatch(err.Error()); in != nil {
			at = keyNode(k.root, in[1])
		}
		return k, at, err
	}
	k.FixKustomization()
	if err := k.CheckEmpty(); err != nil {
		return k, nil, err
	}
	if wrong := k.EnforceFields(); len(wrong) > 0 {
		key, _, _ := strings.Cut(wrong[0], " ") // "kind should be ...", "apiVersion for ..."
		at = k.at(key)
		return k, at, errors.New(wrong[0])
	}
	return k, nil, nil
}

// keyNode is the first key of a name, however deep.
func keyNode(n *yaml.Node, name string) *yaml.Node {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Value == name {
			return child
		}
		if found := keyNode(child, name); found != nil {
			return found
		}
	}
	return nil
}

// at is the value at a path of keys and of places in lists, or the last on the way to it that there is: behind an alias, where that stands.
func (k *kustomization) at(path ...any) *yaml.Node {
	n := k.root
	for _, step := range path {
		var next *yaml.Node
		switch step := step.(type) {
		case string:
			next = child(n, step)
		case int:
			if n.Kind == yaml.SequenceNode && step < len(n.Content) {
				next = n.Content[step]
			}
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// child is the value of a key, in whatever case that is written: kustomize does not tell them apart.
func child(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if strings.EqualFold(n.Content[i].Value, key) {
			return n.Content[i+1]
		}
	}
	return nil
}
