// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"embed"
	"fmt"
	"io/fs"
	"path"

	"github.com/metalaw/metalaw/engine/bundle"
)

//go:embed bundles
var shipped embed.FS

// DefaultBundle is the name of the bundle that governs where no user has activated another.
const DefaultBundle = "default"

// ShippedNames lists the bundles that are built in, sorted.
func ShippedNames() []string {
	entries, err := fs.ReadDir(shipped, "bundles")
	if err != nil {
		return nil // they are compiled in
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Shipped returns the files of a shipped bundle, all of them: what it does not say itself is as the default says it. It
// fails for a name that is not shipped.
func Shipped(name string) (bundle.Files, error) {
	files, err := ownFiles(name)
	if err != nil || name == DefaultBundle {
		return files, err
	}
	fill, err := ownFiles(DefaultBundle)
	if err != nil {
		return nil, err
	}
	return files.Filled(fill), nil
}

// ownFiles is the files that a shipped bundle has of its own.
func ownFiles(name string) (bundle.Files, error) {
	dir := path.Join("bundles", name)
	entries, err := fs.ReadDir(shipped, dir)
	if err != nil {
		return nil, fmt.Errorf("there is no shipped bundle %q", name)
	}
	files := bundle.Files{}
	for _, e := range entries {
		data, err := fs.ReadFile(shipped, path.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("shipped bundle %q: %w", name, err)
		}
		files[e.Name()] = data
	}
	return files, nil
}

// Default compiles the shipped default bundle. It fails only if the program was built with a broken one.
func Default() (*bundle.Bundle, error) {
	files, err := Shipped(DefaultBundle)
	if err != nil {
		return nil, err
	}
	b, found, err := bundle.Compile(files, Vocabulary())
	if err != nil {
		return nil, err
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("the built-in bundle is broken:\n%w", err)
	}
	return b, nil
}
