// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
)

// comparison finds what differs between a directory that was judged and what its kustomization makes.
type comparison struct {
	m     *manuscript
	k     kustomization
	file  string
	found diag.List
}

// warnf adds a finding; at is nil where it is about the whole file.
func (c *comparison) warnf(at *yaml.Node, code, hint, format string, args ...any) {
	d := diag.Diagnostic{Severity: diag.Warning, Code: code, File: c.file, Message: fmt.Sprintf(format, args...), Hint: hint}
	if at != nil {
		d.Line, d.Column = at.Line, at.Column
	}
	c.found = append(c.found, d)
}

// asApplied is what to do where the directory is not what is applied.
func (c *comparison) asApplied() string {
	return "judge what is applied: kubectl kustomize " + c.m.dir + " | metalaw policy verify -f -"
}

// compare finds nothing where the kustomization makes no bundle of the directory: it is about other things then.
func (c *comparison) compare() {
	all := c.k.made()
	heads := slices.DeleteFunc(slices.Clone(all), func(g made) bool { return g.labels[bundleLabel].value == "" })
	if i := slices.IndexFunc(all, func(g made) bool { return g.entry(bundle.BundleFile) != nil }); len(heads) == 0 && i >= 0 {
		heads = all[i : i+1]
	}
	if len(heads) == 0 {
		c.judgeSecrets()
		return
	}
	c.judgeRest()
	c.judgeTwice(all)
	for _, g := range all {
		if g.labels[partLabel].value != "" || slices.ContainsFunc(heads, func(h made) bool { return h.nameAt == g.nameAt }) {
			c.judgeGenerator(g)
		}
	}
	for _, h := range heads {
		c.judgeFiles(h, all)
		c.judgeLabels(h)
		c.judgeName(h)
	}
}

// judgeSecrets finds a bundle that is made a Secret.
func (c *comparison) judgeSecrets() {
	for i, s := range c.k.SecretGenerator {
		if slices.ContainsFunc(s.FileSources, func(text string) bool { return listing(text, nil).key == bundle.BundleFile }) {
			c.warnf(c.k.at("secretGenerator", i, "name"), codeKustomizationForm, "list them under configMapGenerator",
				"it makes a Secret of the files, and a bundle is a ConfigMap")
		}
	}
}

// compared are the keys of a kustomization whose effect on a ConfigMap that it generates is known here, or that have none.
var compared = []string{"apiVersion", "kind", "metadata", "namespace", "namePrefix", "nameSuffix", "labels", "commonLabels",
	"commonAnnotations", "configMapGenerator", "generatorOptions", "secretGenerator", "resources", "bases", "images", "sortOptions",
	"buildMetadata"}

// judgeRest finds what is not compared: what changes the ConfigMap in other ways, and what comes from elsewhere.
func (c *comparison) judgeRest() {
	for i := 0; i+1 < len(c.k.root.Content); i += 2 {
		key, value := c.k.root.Content[i], c.k.root.Content[i+1]
		known := slices.ContainsFunc(compared, func(name string) bool { return strings.EqualFold(name, key.Value) })
		if !known && (len(value.Content) > 0 || value.Kind == yaml.AliasNode) {
			c.warnf(key, codeKustomizationForm, c.asApplied(), "what %s changes is not compared here", key.Value)
		}
	}
	for i, r := range c.k.Resources {
		at := c.k.at("resources", i)
		if at.Kind != yaml.ScalarNode {
			at = c.k.at("bases") // kustomize's own reading puts them behind the others
		}
		if info, err := os.Stat(c.path(r)); err != nil || !info.Mode().IsRegular() || c.outside(r) {
			c.warnf(at, codeKustomizationForm, c.asApplied(), "%s is no file of the directory, and what it brings is not compared here", r)
		}
	}
}

// judgeTwice finds ConfigMaps of one name.
func (c *comparison) judgeTwice(all []made) {
	type id struct{ namespace, name string }
	seen := map[id]bool{}
	for _, g := range all {
		is := id{g.Namespace, g.Name}
		if seen[is] {
			c.warnf(g.nameAt, codeKustomizationForm, "give each a name of its own",
				"it makes ConfigMap %s twice, so that `kubectl apply -k` fails", g.Name)
		}
		seen[is] = true
	}
}

// judgeLabels finds what admission refuses of the labels, or warns of, and a stage that is another than the generator says.
func (c *comparison) judgeLabels(head made) {
	if head.labels[bundleLabel].value == "" {
		c.warnf(head.nameAt, codeKustomizationName, "give it the label, with the name in "+bundle.BundleFile,
			"it makes no bundle: ConfigMap %s, which holds %s, has no label %s", head.name, bundle.BundleFile, bundleLabel)
		return
	}
	for _, f := range faults(plain(head.labels), plain(head.annotations), c.m.files) {
		values := head.labels
		if f.kind == annotationsKey {
			values = head.annotations
		}
		c.warnf(cmp.Or(values[f.key].at, head.nameAt), codeKustomizationName, f.hint, "%s", f.message)
	}
	stage := policyv1alpha1.StageLabel
	if own, is := head.own[stage], head.labels[stage]; own.at != nil && own.value != is.value {
		c.warnf(is.at, codeKustomizationName, "say it in one place", "label %s becomes %q by this, and the generator says %q",
			stage, is.value, own.value)
	}
}

// versionIn is the version at the end of the name of a ConfigMap, as `policy init` gives it.
var versionIn = regexp.MustCompile(`-(\d+\.\d+\.\d+([-.].*)?)$`)

// judgeName finds a namespace in which a bundle means nothing, and a name that is another than bundle.yaml or the generator says.
func (c *comparison) judgeName(head made) {
	if ns := head.namespace; ns.value != "" && ns.value != defaultNamespace {
		c.warnf(ns.at, codeKustomizationName, "write namespace: "+defaultNamespace,
			"it makes the ConfigMap in the namespace %s, and a bundle means nothing outside of the manager's, which is %s unless that was moved",
			ns.value, defaultNamespace)
	}
	at := head.nameAt
	switch {
	case c.k.NameSuffix != "":
		at = c.k.at("nameSuffix")
	case c.k.NamePrefix != "":
		at = c.k.at("namePrefix")
	}
	is := selfIn(c.m.files)
	in := versionIn.FindStringSubmatch(head.name)
	if version := strings.ToLower(strings.ReplaceAll(is.Version, "+", "-")); in != nil && version != "" && in[1] != version {
		c.warnf(at, codeKustomizationName, "call it "+strings.TrimSuffix(head.name, in[1])+version, "it calls the ConfigMap %s and %s says version "+
			"%s: this would change the ConfigMap of the other version, which is refused once that has left the stage draft",
			head.name, bundle.BundleFile, is.Version)
	} else if head.name != head.Name {
		c.warnf(at, codeKustomizationName, "write the whole name there", "the ConfigMap is called %s by this, and the generator says %s",
			head.name, head.Name)
	}
}
