// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

// source is where a bundle is read from: a directory with its files, a file of manifests with its ConfigMaps, standard
// input with the same, or a bundle that is built in.
type source struct {
	path    string
	shipped string
}

func (s *source) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&s.path, "filename", "f", "", "directory with the bundle's files, file with its ConfigMaps, or - for standard input")
	f.StringVar(&s.shipped, "from", "", "a bundle that is built in: "+strings.Join(policies.ShippedNames(), ", "))
	// The errors are about flags that do not exist.
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(policies.ShippedNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagFilename("filename")
}

// manuscript is a bundle as its author keeps it.
type manuscript struct {
	// name says what was read, for people.
	name  string
	files bundle.Files
	// others are files in the directory that belong to no bundle though their names look like it.
	others []string
	// at says where a file of the bundle begins in what was read.
	at map[string]origin
}

// origin is where the text of one file of a bundle stands.
type origin struct {
	path string
	// line and column are added to a place in the text.
	line, column int
}

// place is where a place in a file of the bundle stands in what was read.
func (m *manuscript) place(file string, line, column int) (path string, atLine, atColumn int) {
	o, ok := m.at[file]
	if !ok {
		o = origin{path: file}
	}
	if line == 0 {
		return o.path, o.line, 0
	}
	return o.path, line + o.line, column + o.column
}

// read reads the one bundle that the flags name.
func (s *source) read(in io.Reader) (*manuscript, error) {
	switch {
	case s.path != "" && s.shipped != "":
		return nil, usage.Errorf("give -f or --from, not both")
	case s.shipped != "":
		files, err := policies.Shipped(s.shipped)
		if err != nil {
			return nil, usage.Errorf("%v; there are %s", err, strings.Join(policies.ShippedNames(), ", "))
		}
		return &manuscript{name: "built-in bundle " + s.shipped, files: files}, nil
	case s.path == "":
		return nil, usage.Errorf("which bundle? Name its directory or file with -f, or a built-in one with --from")
	case s.path == "-":
		data, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		return readManifests("standard input", data)
	}
	info, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usage.Errorf("there is no file or directory %s", s.path)
	}
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return readDirectory(s.path)
	}
	data, err := os.ReadFile(s.path)
	if err != nil {
		return nil, err
	}
	return readManifests(s.path, data)
}

// belongs says whether a file of this name is part of a bundle.
func belongs(name string) bool {
	return slices.Contains(bundle.Known(), name) || strings.HasSuffix(name, "_test.rego")
}

// mistakable says whether somebody may have meant a file of this name to be part of a bundle, such as lifecycle.yml.
func mistakable(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".rego"}, filepath.Ext(name)) && !strings.HasPrefix(name, ".") &&
		!strings.HasPrefix(name, "kustomization.")
}

// tellPassedOver names files that nothing reads.
func (m *manuscript) tellPassedOver(t *terminal.Terminal) error {
	if len(m.others) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(t.Err, "passed over, because no file of a bundle has such a name: %s\n", terminal.Plain(strings.Join(m.others, ", ")))
	return err
}

func readDirectory(dir string) (*manuscript, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	m := &manuscript{name: dir, files: bundle.Files{}, at: map[string]origin{}}
	for _, e := range entries {
		if e.IsDir() || !belongs(e.Name()) {
			if !e.IsDir() && mistakable(e.Name()) {
				m.others = append(m.others, e.Name())
			}
			continue
		}
		path := filepath.Join(dir, e.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m.files[e.Name()], m.at[e.Name()] = data, origin{path: path}
	}
	if len(m.files) == 0 {
		return nil, fmt.Errorf("the directory %s holds no file of a bundle; `metalaw policy init %s` writes some to start from", dir, dir)
	}
	return m, nil
}

// readManifests takes the one bundle out of a stream of manifests; other objects in it are passed over.
func readManifests(path string, data []byte) (*manuscript, error) {
	objects, err := configMaps(path, data)
	if err != nil {
		return nil, err
	}
	var heads []*configMap
	parts := map[string]*configMap{}
	for _, c := range objects {
		switch {
		case c.labels[bundleLabel] != "":
			heads = append(heads, c)
		case c.labels[partLabel] != "":
			parts[c.name] = c
		}
	}
	switch len(heads) {
	case 0:
		return nil, fmt.Errorf("%s holds no bundle: no ConfigMap with the label %s is in it", path, bundleLabel)
	case 1:
		return heads[0].manuscript(path, parts)
	default:
		names := make([]string, len(heads))
		for i, h := range heads {
			names[i] = h.name
		}
		return nil, fmt.Errorf("%s holds %d bundles (%s); give one of them", path, len(heads), strings.Join(names, ", "))
	}
}

// configMap is one ConfigMap of a stream, with the places of its files.
type configMap struct {
	name   string
	labels map[string]string
	files  bundle.Files
	at     map[string]origin
}

func configMaps(path string, data []byte) ([]*configMap, error) {
	var all []*configMap
	lines := strings.Split(string(data), "\n")
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		var head struct {
			Kind     string
			Metadata struct {
				Name   string
				Labels map[string]string
			}
			Data map[string]yaml.Node
		}
		if doc.Decode(&head) != nil || head.Kind != "ConfigMap" {
			continue // another object, which is none of ours
		}
		c := &configMap{name: head.Metadata.Name, labels: head.Metadata.Labels, files: bundle.Files{}, at: map[string]origin{}}
		for key, node := range head.Data {
			c.files[key] = []byte(node.Value)
			c.at[key] = originOf(path, &node, lines)
		}
		all = append(all, c)
	}
}

// originOf says where the text of a scalar begins. Of text that is folded or quoted only the line at which it begins is known.
func originOf(path string, n *yaml.Node, lines []string) origin {
	o := origin{path: path, line: n.Line}
	if n.Style == yaml.LiteralStyle {
		for _, line := range lines[min(n.Line, len(lines)):] {
			if strings.TrimSpace(line) != "" {
				o.column = len(line) - len(strings.TrimLeft(line, " "))
				break
			}
		}
	}
	return o
}

// manuscript puts a bundle together from its head and the parts that its manifest lists.
func (c *configMap) manuscript(path string, parts map[string]*configMap) (*manuscript, error) {
	m := &manuscript{name: path + ", ConfigMap " + c.name, at: c.at}
	head := make(map[string]string, len(c.files))
	for name, data := range c.files {
		head[name] = string(data)
	}
	files, found := bundle.Assemble(head, func(holder, file string) (string, bool) {
		part, ok := parts[holder]
		if !ok {
			return "", false
		}
		m.at[file] = part.at[file]
		text, ok := part.files[file]
		return string(text), ok
	})
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("the bundle of %s is not whole:\n%w", m.name, err)
	}
	m.files = files
	return m, nil
}
