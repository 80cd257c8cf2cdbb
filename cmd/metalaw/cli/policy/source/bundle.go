// SPDX-License-Identifier: Apache-2.0

// Package source reads a policy bundle as its author keeps it: a directory, manifests, or one that is built in.
package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/policies"
)

const (
	bundleLabel = policyv1alpha1.BundleLabel
	partLabel   = policyv1alpha1.BundlePartLabel
)

// Flags say where a bundle is read from: a directory with its files, a file of manifests with its ConfigMaps, standard
// input with the same, or a bundle that is built in.
type Flags struct {
	Path    string
	Shipped string
}

// Register adds the flags that name a bundle to a command.
func (s *Flags) Register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&s.Path, "filename", "f", "", "directory with the bundle's files, file with its ConfigMaps, or - for standard input")
	f.StringVar(&s.Shipped, "from", "", "a bundle that is built in: "+strings.Join(policies.ShippedNames(), ", "))
	terminal.Offer(cmd, "from", policies.ShippedNames())
	_ = cmd.MarkFlagFilename("filename") // the error is about a flag that does not exist
}

// Bundle is a bundle as its author keeps it.
type Bundle struct {
	// Name says what was read, for people.
	Name  string
	Files bundle.Files
	// at says where a file of the bundle begins in what was read.
	at map[string]origin
	// dir is the directory that was read; empty where it was none.
	dir string
	// Labels is what admission refuses of the labels and annotations of the ConfigMap, or warns of.
	Labels diag.List
}

// Of is a bundle whose files stand below a place, such as a directory; it was not read here.
func Of(name, place string, files bundle.Files) *Bundle {
	b := &Bundle{Name: name, Files: files, at: map[string]origin{}}
	for file := range files {
		b.at[file] = origin{path: filepath.Join(place, file)}
	}
	return b
}

// origin is where the text of one file of a bundle stands.
type origin struct {
	path string
	// line and column are added to a place in the text; of quoted text they are the place of its beginning.
	line, column int
	// quoted says that the lines of the text are not those of the file.
	quoted bool
	// key is where an object names the file; nil for a file of a directory.
	key *yaml.Node
}

// Place is where a place in a file of the bundle stands in what was read.
func (m *Bundle) Place(file string, line, column int) (path string, atLine, atColumn int) {
	o, ok := m.at[file]
	if !ok {
		o = origin{path: file}
	}
	if !ok && line == 0 { // where it would be; what has a line stands in a file that was filled in
		o.path = filepath.Join(m.dir, file)
	}
	if line == 0 && o.key != nil {
		return o.path, o.key.Line, o.key.Column
	}
	if line == 0 {
		return o.path, o.line, 0
	}
	if o.quoted {
		return o.path, o.line, o.column
	}
	return o.path, line + o.line, column + o.column
}

// Placed is a finding at the place where its file stands. Within quoted or folded text no place can be told from the lines of
// the file, so that the finding says both; and of many files in one the finding says which it is about as a whole.
func (m *Bundle) Placed(d diag.Diagnostic) diag.Diagnostic {
	switch o := m.at[d.File]; {
	case d.Line == 0 && o.key != nil:
		d.Message = d.File + ": " + d.Message
	case d.Line > 0 && o.quoted:
		d.Message = fmt.Sprintf("%s:%d:%d: %s", d.File, d.Line, d.Column, d.Message)
	}
	d.File, d.Line, d.Column = m.Place(d.File, d.Line, d.Column)
	return d
}

// Read reads the one bundle that the flags name.
func (s *Flags) Read(ctx context.Context, in io.Reader) (*Bundle, error) {
	switch {
	case s.Path != "" && s.Shipped != "":
		return nil, usage.Errorf("give -f or --from, not both")
	case s.Shipped != "":
		files, err := policies.Shipped(s.Shipped)
		if err != nil {
			return nil, usage.Errorf("%v; there are %s", err, strings.Join(policies.ShippedNames(), ", "))
		}
		return &Bundle{Name: "built-in bundle " + s.Shipped, Files: files}, nil
	case s.Path == "":
		return nil, usage.Errorf("which bundle? Name its directory or file with -f, or a built-in one with --from")
	case s.Path == "-":
		return readStream(ctx, "standard input", s.Path, in)
	}
	info, err := os.Stat(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usage.Errorf("there is no file or directory %s", s.Path)
	}
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return Directory(s.Path)
	}
	m, err := readStream(ctx, s.Path, s.Path, in)
	none, ok := errors.AsType[*LoadError](err)
	if isFileName(filepath.Base(s.Path)) && (ok && none.isAbsent() || strings.HasSuffix(s.Path, ".rego")) {
		return nil, absent(s.Path, "this is one file of a bundle, and holds no ConfigMap", "name its directory: -f "+filepath.Dir(s.Path))
	}
	return m, err
}

const (
	codeAbsent      = "bundle-absent"
	codeSeveral     = "bundle-several"
	codeNoConfigMap = "bundle-object"
	codeEncoding    = "file-encoding"
	codeSyntax      = "yaml-syntax"
	codeTwice       = "yaml-duplicate-key"
)

// LoadError is what nothing can be compiled of: a bundle that is not whole, or what is none. Its findings are told in the form that was
// asked for, as those of any bundle are.
type LoadError struct {
	*Bundle
	Found diag.List
}

func (u *LoadError) Error() string {
	placed := make(diag.List, len(u.Found))
	for i, d := range u.Found {
		placed[i] = u.Placed(d)
	}
	return fmt.Sprintf("%s: there is no whole bundle:\n%v", u.Name, placed.Err())
}

// absent says of what was read as a whole that it is no bundle.
func absent(name, message, hint string) *LoadError {
	return &LoadError{&Bundle{Name: name}, diag.List{{Severity: diag.Error, Code: codeAbsent, File: name, Message: message, Hint: hint}}}
}

// unreadable says at a place of a stream of manifests why no bundle can be taken out of it.
func unreadable(name string, at *yaml.Node, code, message, hint string) *LoadError {
	return &LoadError{&Bundle{Name: name}, diag.List{{Severity: diag.Error, Code: code, File: name, Line: at.Line, Column: at.Column,
		Message: message, Hint: hint}}}
}

// yamlError is how the parser says where it could not read on.
var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// noYAML says why a stream of manifests could not be parsed: what is no text is told with its place.
func noYAML(name string, data []byte, err error) *LoadError {
	if found := bundle.NoText(bundle.Files{name: data}); len(found) > 0 {
		return &LoadError{&Bundle{Name: name}, found}
	}
	at, message := &yaml.Node{}, err.Error()
	if in := yamlError.FindStringSubmatch(message); in != nil {
		message = in[2]
		if line, err := strconv.Atoi(in[1]); err == nil {
			at.Line, at.Column = line, 1
		}
	}
	return unreadable(name, at, codeSyntax, "YAML cannot be read on from here: "+message,
		"check indentation, brackets and quotes in this line and the next")
}

// isAbsent says that it is none at all.
func (u *LoadError) isAbsent() bool { return len(u.Found) == 1 && u.Found[0].Code == codeAbsent }
