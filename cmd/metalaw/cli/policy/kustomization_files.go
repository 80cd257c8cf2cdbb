// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine/bundle"
)

// judgeGenerator finds what is wrong with a generator by itself, whatever the bundle says.
func (c *comparison) judgeGenerator(g made) {
	if g.Name == "" {
		c.warnf(g.nameAt, codeKustomizationForm, "name it NAME-VERSION", "it makes a ConfigMap without a name, so that `kubectl apply -k` fails")
	}
	if g.Behavior == "merge" || g.Behavior == "replace" {
		c.warnf(g.behaviorAt, codeKustomizationForm, "take behavior out, or "+c.asApplied(), "behavior %s changes a ConfigMap that a resource "+
			"makes, which is not compared here; where none does, `kubectl apply -k` fails", g.Behavior)
	}
	given := map[string]bool{}
	twice := func(e dataEntry) {
		c.warnf(e.at, codeKustomizationFile, "take one of the two out", "it gives %s twice, so that `kubectl apply -k` fails", e.key)
	}
	for _, e := range g.entries {
		if given[e.key] {
			twice(e)
		} else if message, hint := c.judgeEntry(e); message != "" {
			c.warnf(e.at, codeKustomizationFile, hint, "%s", message)
		}
		given[e.key] = true
	}
	for _, e := range g.added {
		if given[e.key] {
			twice(e)
			continue
		}
		c.warnf(e.at, codeKustomizationFile, "keep each file of the bundle in the directory and list it under files",
			"it adds to the ConfigMap what is in no file of the directory, and was not judged here")
	}
}

// judgeEntry says what is wrong with a file that is listed.
func (c *comparison) judgeEntry(e dataEntry) (message, hint string) {
	const fails = ", so that `kubectl apply -k` fails"
	shown := filepath.Clean(e.path)
	info, err := os.Stat(c.path(e.path))
	switch {
	case e.key == "" || e.path == "" || strings.Contains(e.path, "="):
		return "it lists what is no PATH and no KEY=PATH" + fails, "write one of the two"
	case strings.Contains(e.path, "://"):
		return fmt.Sprintf("it makes %s of %s, which is not looked at here", e.key, e.path), "keep it in the directory, or " + c.asApplied()
	case errors.Is(err, fs.ErrNotExist):
		return "it lists " + shown + ", which is not there" + fails, "take the file out of the list, or put it back"
	case err != nil:
		return fmt.Sprintf("it lists %s, which cannot be looked at: %v", shown, err), "list files of the directory"
	case c.outside(e.path):
		return "it lists " + shown + ", which is outside of the directory" + fails, "keep a copy of it in the directory"
	case info.IsDir():
		return "it lists " + shown + ", which is a directory" + fails, "list the files of the bundle"
	case beside(e.key):
		return fmt.Sprintf("it puts %s into the ConfigMap, which is no file of a bundle, so that the ConfigMap is refused", e.key),
			"take the file out of the list"
	}
	if judged, err := os.Stat(c.path(e.key)); err != nil || !os.SameFile(judged, info) {
		return fmt.Sprintf("it makes %s of %s, which was not judged here", e.key, shown),
			"keep it as " + e.key + " in the directory, or " + c.asApplied()
	}
	return "", ""
}

// path is where a path of the kustomization leads.
func (c *comparison) path(listed string) string {
	if filepath.IsAbs(listed) {
		return listed
	}
	return filepath.Join(c.m.dir, listed)
}

// outside says that a path, or the link that stands there, leads out of the directory: kustomize reads nothing there.
func (c *comparison) outside(listed string) bool {
	root, err := unlinked(c.m.dir)
	if err != nil {
		return true
	}
	target, err := unlinked(c.path(listed))
	if err != nil {
		return true
	}
	within, err := filepath.Rel(root, target)
	return err != nil || !filepath.IsLocal(within)
}

// unlinked is a path without links, from the root.
func unlinked(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// judgeFiles finds the files of the directory that a bundle has here and would not have where it is applied: each belongs into the head,
// or, where manifest.yaml lists it, into the ConfigMap that is named there.
func (c *comparison) judgeFiles(head made, all []made) {
	name := head.labels[bundleLabel].value
	parts := slices.DeleteFunc(slices.Clone(all), func(g made) bool {
		label := g.labels[partLabel].value
		return label == "" || name != "" && label != name
	})
	for _, file := range slices.Sorted(slices.Values(c.m.own)) {
		if i := slices.IndexFunc(c.m.parts, func(p bundle.Part) bool { return p.Name == file }); i >= 0 {
			c.judgePart(head, c.m.parts[i], parts)
			continue
		}
		if head.entry(file) != nil {
			continue
		}
		if i := slices.IndexFunc(parts, func(g made) bool { return g.entry(file) != nil }); i >= 0 {
			c.warnf(parts[i].entry(file).at, codeKustomizationFile, "list it there with its digest, or here among the files of "+head.name,
				"it puts %s into ConfigMap %s, and %s does not list it there, so that the bundle is without it",
				file, parts[i].name, bundle.PartsFile)
			continue
		}
		c.warnf(head.nameAt, codeKustomizationFile, "add it to files, or delete the file",
			"it does not list %s, which was judged here and which the ConfigMap that `kubectl apply -k` makes will not hold", file)
	}
}

// judgePart finds a file that is not in the ConfigMap in which manifest.yaml lists it.
func (c *comparison) judgePart(head made, p bundle.Part, parts []made) {
	if e := head.entry(p.Name); e != nil {
		c.warnf(e.at, codeKustomizationFile, "take it out here, and list it in a generator of ConfigMap "+p.ConfigMap,
			"it puts %s into the head, and %s lists it in ConfigMap %s, so that the bundle is refused", p.Name, bundle.PartsFile, p.ConfigMap)
		return
	}
	if slices.ContainsFunc(parts, func(g made) bool { return g.name == p.ConfigMap && !g.hashed && g.entry(p.Name) != nil }) {
		return
	}
	c.warnf(head.nameAt, codeKustomizationFile, fmt.Sprintf("list the file in a generator of this name, with disableNameSuffixHash: true and "+
		"the label %s: %s", partLabel, cmp.Or(head.labels[bundleLabel].value, "NAME")),
		"it does not make ConfigMap %s with %s, as %s lists it: the bundle is not whole where that is not stored already",
		p.ConfigMap, p.Name, bundle.PartsFile)
}
