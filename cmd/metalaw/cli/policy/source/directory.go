// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
)

// KustomizationFile is the kustomization of a bundle as `policy init` writes it.
const KustomizationFile = "kustomization.yaml"

// kustomizationFiles are the names that kustomize looks for, in its order.
var kustomizationFiles = []string{KustomizationFile, "kustomization.yml", "Kustomization"}

// Kustomized is the command that verifies what the kustomization of the directory makes; empty where there is none.
func (m *Bundle) Kustomized() string {
	if m.dir == "" {
		return ""
	}
	return kustomized(m.dir)
}

func kustomized(dir string) string {
	for _, name := range kustomizationFiles {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return "`kubectl kustomize " + dir + " | metalaw policy verify -f -`"
		}
	}
	return ""
}

// beside says that a file of a directory is there for other programs or for readers, and not for metalaw.
func beside(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "README") ||
		slices.Contains(kustomizationFiles, name)
}

// Directory reads the files of a directory as those of one ConfigMap, as the kustomization of `policy init` makes it. A file
// that manifest.yaml lists may be beside it.
func Directory(dir string) (*Bundle, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	c := &configMap{files: bundle.Files{}, at: map[string]origin{}}
	var wrong diag.List
	for _, e := range entries {
		name, path := e.Name(), filepath.Join(dir, e.Name())
		if beside(name) || e.IsDir() && !isFileName(name) {
			continue
		}
		data, d, err := readFile(path)
		if err != nil {
			return nil, err
		}
		c.at[name] = origin{path: path}
		if d != nil {
			d.File = name
			wrong = append(wrong, *d)
			continue
		}
		c.files[name] = data
	}
	if len(wrong) > 0 {
		return nil, &LoadError{&Bundle{Name: dir, dir: dir, at: c.at}, wrong}
	}
	if len(c.files) == 0 {
		hint := "`metalaw policy init " + dir + "` writes some to start from"
		if command := kustomized(dir); command != "" {
			hint = "verify what its kustomization makes: " + command
		}
		return nil, absent(dir, "the directory holds no file of a bundle", hint)
	}
	listed := &configMap{files: bundle.Files{}, at: c.at}
	for _, p := range bundle.Parts(string(c.files[bundle.PartsFile])) {
		if data, ok := c.files[p.Name]; ok {
			listed.files[p.Name] = data
			delete(c.files, p.Name)
		}
	}
	m, err := c.assembled(dir, func(string) *configMap { return listed })
	if m != nil {
		m.dir = dir
	}
	return m, err
}

// isFileName says that a bundle would read a file of this name.
func isFileName(name string) bool {
	return slices.Contains(bundle.FileNames, name) || strings.HasSuffix(name, ".rego")
}

// readFile reads a file of a bundle, and no more of it than a bundle may have. wrong is what is wrong with it: a pipe is not waited for, and
// a device not read.
func readFile(path string) (data []byte, wrong *diag.Diagnostic, err error) {
	is := ""
	info, err := os.Stat(path) // what a link leads to
	switch {
	case errors.Is(err, fs.ErrNotExist):
		is = "a link that leads nowhere"
	case err != nil:
		return nil, nil, err
	case info.IsDir():
		is = "a directory"
	case !info.Mode().IsRegular():
		is = "a pipe, a socket or a device"
	}
	if is != "" {
		return nil, &diag.Diagnostic{Severity: diag.Error, Code: "file-kind", Message: "this is " + is + " and no file with text",
			Hint: "put the text of the file there, or take it out"}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() //nolint:errcheck // It was only read.
	data, err = io.ReadAll(io.LimitReader(f, bundle.MaxFileBytes+1))
	if err == nil && len(data) > bundle.MaxFileBytes {
		wrong = &diag.Diagnostic{Severity: diag.Error, Code: "limit-file-size",
			Message: fmt.Sprintf("the file has %d bytes and at most %d are read", max(info.Size(), int64(len(data))), bundle.MaxFileBytes),
			Hint:    "a bundle holds rules, not data: put what differs between servers into their labels, and take out what nothing reads"}
	}
	return data, wrong, err
}
