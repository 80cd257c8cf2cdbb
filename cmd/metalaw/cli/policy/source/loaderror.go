// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
)

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
