// SPDX-License-Identifier: Apache-2.0

// Package testkit gives tests what they share. A test that takes the shipped version from here follows a new one without an edit.
package testkit

import (
	"regexp"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/policies"
)

var (
	nameLine    = regexp.MustCompile(`(?m)^name: .*$`)
	versionLine = regexp.MustCompile(`(?m)^version: (.*)$`)
)

// Version is the version of the shipped default bundle.
var Version = shippedVersion()

// Default is the name and the version of the shipped default bundle, as its PolicyRevision begins.
var Default = policies.DefaultBundle + "-" + Version

func shippedVersion() string {
	files, err := policies.Shipped(policies.DefaultBundle)
	if err != nil {
		panic(err) // the bundle is compiled in
	}
	found := versionLine.FindSubmatch(files[bundle.BundleFile])
	if found == nil {
		panic("the shipped default bundle has no line version: in " + bundle.BundleFile)
	}
	return string(found[1])
}

// Rename gives a bundle another name and version. An empty text leaves what the bundle says.
func Rename(files bundle.Files, name, version string) {
	text := files[bundle.BundleFile]
	for _, change := range []struct {
		line      *regexp.Regexp
		key, word string
	}{{nameLine, "name: ", name}, {versionLine, "version: ", version}} {
		if change.word == "" {
			continue
		}
		if len(change.line.FindAll(text, 2)) != 1 {
			panic(bundle.BundleFile + " does not have exactly one line " + change.key)
		}
		text = change.line.ReplaceAllLiteral(text, []byte(change.key+change.word))
	}
	files[bundle.BundleFile] = text
}
