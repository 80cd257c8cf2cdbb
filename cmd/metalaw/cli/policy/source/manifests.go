// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/internal/canary"
)

// maxManifests is how much of a stream of manifests is read: many times what a bundle and its parts may have.
const maxManifests = 64 << 20

func readStream(ctx context.Context, name, path string, in io.Reader) (*Bundle, error) {
	data, err := terminal.Read(ctx, path, in, maxManifests)
	if err != nil {
		return nil, err
	}
	if len(data) > maxManifests {
		return nil, absent(name, fmt.Sprintf("it has more than %d bytes, of which no more are read", maxManifests),
			"give the ConfigMaps of one bundle, and no more than they")
	}
	return readManifests(name, data)
}

// readManifests takes the one bundle out of a stream of manifests; other objects in it are passed over.
func readManifests(path string, data []byte) (*Bundle, error) {
	objects, err := configMaps(path, data)
	if err != nil {
		return nil, err
	}
	var heads []*configMap
	var others parts
	for _, c := range objects {
		switch {
		case c.labels[bundleLabel] != "":
			heads = append(heads, c)
		case c.labels[partLabel] != "":
			others = append(others, c)
		}
	}
	switch len(heads) {
	case 0:
		return nil, absent(path, "it holds no bundle: no ConfigMap with the label "+bundleLabel+" is in it",
			"give the directory of a bundle, or the manifest of its ConfigMap with this label")
	case 1:
		head := heads[0]
		m, err := head.assembled(path+", ConfigMap "+head.name, func(name string) *configMap { return others.find(head, name, true) })
		if none, ok := errors.AsType[*LoadError](err); ok {
			others.tellApart(head, none.Found)
		}
		if err != nil {
			return nil, err
		}
		m.Labels, m.at[metadata] = head.judgeLabels(m.Files), origin{path: path}
		return m, nil
	default:
		names := lists.Map(heads, func(h **configMap) string { return (*h).name })
		return nil, unreadable(path, heads[1].object, codeSeveral, fmt.Sprintf("there are %d bundles here (%s), and one is judged at a time",
			len(heads), strings.Join(names, ", ")), "give one of them")
	}
}

// configMap is one ConfigMap of a stream, with the places of its files.
type configMap struct {
	// namespace is empty where it is that which kubectl happens to use.
	namespace, name     string
	labels, annotations map[string]string
	files               bundle.Files
	at                  map[string]origin
	// object is the ConfigMap itself; nil for a directory.
	object *yaml.Node
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
			return nil, noYAML(path, data, err)
		}
		found, err := objectsIn(path, &doc, lines)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
}

// objectsIn are the ConfigMaps of one document: the one that it is, or those of the list that it is, as kubectl prints several
// objects.
func objectsIn(path string, doc *yaml.Node, lines []string) ([]*configMap, error) {
	var head struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct {
			Namespace, Name     string
			Labels, Annotations map[string]string
		}
		Data       map[string]yaml.Node
		BinaryData map[string]yaml.Node `yaml:"binaryData"`
		Items      []yaml.Node
	}
	if doc.Decode(&head) != nil {
		return nil, writtenTwice(path, doc) // else another object, which is none of ours
	}
	if head.Kind == "List" || head.Kind == "ConfigMapList" {
		var all []*configMap
		for i := range head.Items {
			found, err := objectsIn(path, &head.Items[i], lines)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
		return all, nil
	}
	c := &configMap{namespace: head.Metadata.Namespace, name: head.Metadata.Name, labels: head.Metadata.Labels,
		annotations: head.Metadata.Annotations, files: bundle.Files{}, at: map[string]origin{}, object: placeOf(doc)}
	ours := c.labels[bundleLabel] != "" || c.labels[partLabel] != ""
	if ours && (head.Kind == "" || head.Kind == "ConfigMap" && head.APIVersion != "v1") {
		return nil, unreadable(path, c.object, codeNoConfigMap, fmt.Sprintf("the object %q has the label of a bundle and is no ConfigMap as it is "+
			"written", c.name), "write apiVersion: v1 and kind: ConfigMap")
	}
	if head.Kind != "ConfigMap" || !ours {
		return nil, nil
	}
	for _, key := range slices.Sorted(maps.Keys(head.BinaryData)) {
		node := head.BinaryData[key]
		return nil, unreadable(path, &node, codeEncoding, fmt.Sprintf("ConfigMap %s has %s under binaryData, which nothing reads: "+
			"a file of a bundle is UTF-8 text", c.name, key), "see whether the file has another encoding")
	}
	data := child(c.object, "data")
	for key, node := range head.Data {
		c.files[key] = []byte(node.Value)
		o := originOf(path, &node, lines)
		at, _ := field(data, key)
		o.key = cmp.Or(at, &node)
		c.at[key] = o
	}
	return []*configMap{c}, nil
}

// writtenTwice names the first key that stands twice in one mapping of an object; nil where none does.
func writtenTwice(path string, n *yaml.Node) error {
	first := map[string]int{}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if line, again := first[child.Value]; again {
				return unreadable(path, child, codeTwice, fmt.Sprintf("the key %q stands in line %d already", child.Value, line),
					"where another object begins here, put --- before it")
			}
			first[child.Value] = child.Line
		}
		if err := writtenTwice(path, child); err != nil {
			return err
		}
	}
	return nil
}

func placeOf(doc *yaml.Node) *yaml.Node {
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		return doc.Content[0]
	}
	return doc
}

// originOf says where the text of a scalar begins. Of text that is folded or quoted only where the scalar begins is known.
func originOf(path string, n *yaml.Node, lines []string) origin {
	if n.Style != yaml.LiteralStyle {
		return origin{path: path, line: n.Line, column: n.Column, quoted: true}
	}
	o := origin{path: path, line: n.Line}
	for _, line := range lines[min(n.Line, len(lines)):] {
		if strings.TrimSpace(line) != "" {
			o.column = len(line) - len(strings.TrimLeft(line, " "))
			break
		}
	}
	// An indentation indicator (|2) leaves spaces at the beginning of the text, which count in its own columns.
	first := strings.TrimLeft(n.Value, "\n")
	o.column -= len(first) - len(strings.TrimLeft(first, " "))
	return o
}

// assembled puts a bundle together from its head and the parts that its manifest lists. holder gives a ConfigMap by its name.
func (c *configMap) assembled(name string, holder func(string) *configMap) (*Bundle, error) {
	m := &Bundle{Name: name, at: c.at}
	head := make(map[string]string, len(c.files))
	for name, data := range c.files {
		head[name] = string(data)
	}
	files, found := bundle.Assemble(c.name, head, func(configMap, file string) (string, bool) {
		part := holder(configMap)
		if part == nil {
			return "", false
		}
		if at, ok := part.at[file]; ok {
			m.at[file] = at
		}
		text, ok := part.files[file]
		return string(text), ok
	})
	if found.HasErrors() {
		return nil, &LoadError{m, found}
	}
	m.Files = files
	return m, nil
}

// parts are the ConfigMaps of a stream that hold files for a head.
type parts []*configMap

// find finds a part, as the manager would, in the namespace of its head, or in another; nil where there is none.
// What says no namespace is applied to that which
// kubectl happens to use, and may be in either. Of several the last counts, as it does when they are applied.
func (p parts) find(head *configMap, name string, together bool) *configMap {
	for _, c := range slices.Backward(p) {
		apart := c.namespace != head.namespace && c.namespace != "" && head.namespace != ""
		if c.name == name && c.labels[partLabel] == head.labels[bundleLabel] && apart != together {
			return c
		}
	}
	return nil
}

// tellApart says of parts that are missing in which other namespace they are.
func (p parts) tellApart(head *configMap, found diag.List) {
	listed := bundle.Parts(string(head.files[bundle.PartsFile]))
	for i, d := range found {
		at := slices.IndexFunc(listed, func(l bundle.Part) bool { return l.Name == d.Rule })
		if d.Code != bundle.CodePartMissing || at < 0 || p.find(head, listed[at].ConfigMap, true) != nil {
			continue
		}
		if c := p.find(head, listed[at].ConfigMap, false); c != nil {
			found[i].Message = fmt.Sprintf("%s: the one here is in namespace %s, and the bundle in %s", d.Message, c.namespace, head.namespace)
		}
	}
}

// judgeLabels finds what is wrong with a head's labels and annotations: an unknown stage, a canary without a scope, and another name than
// the bundle's, of which admission only warns while it is a draft. The findings are of the file metadata.
func (c *configMap) judgeLabels(files bundle.Files) diag.List {
	var found diag.List
	add := func(severity diag.Severity, code, kind, key, message, hint string) {
		at := c.object
		if written := child(child(child(c.object, "metadata"), kind), key); written != nil {
			at = written
		}
		found = append(found, diag.Diagnostic{Severity: severity, Code: code, File: metadata, Line: at.Line, Column: at.Column,
			Rule: "ConfigMap " + c.name, Message: message, Hint: hint})
	}
	stage := cmp.Or(c.labels[policyv1alpha1.StageLabel], policyv1alpha1.LabelDraft)
	if stages := policyv1alpha1.Stages(); !slices.Contains(stages, stage) {
		add(diag.Error, "label-stage", "labels", policyv1alpha1.StageLabel,
			fmt.Sprintf("label %s is %q", policyv1alpha1.StageLabel, stage), "there are "+strings.Join(stages, ", "))
		return found
	}
	if label, name := c.labels[bundleLabel], nameIn(files); name != "" && name != label {
		severity := diag.Error
		if stage == policyv1alpha1.LabelDraft {
			severity = diag.Warning
		}
		add(severity, "label-bundle", "labels", bundleLabel,
			fmt.Sprintf("label %s says %q and %s names the bundle %q", bundleLabel, label, bundle.BundleFile, name), "write the same name in both")
	}
	if stage == policyv1alpha1.LabelCanary {
		_, wrong := canary.Parse(c.annotations)
		for _, f := range wrong {
			add(diag.Error, "canary-scope", "annotations", f.Annotation(), fmt.Sprintf("annotation %s: %s", f.Annotation(), f), "")
		}
	}
	return found
}

// metadata stands for the object that holds a bundle among the files of the bundle.
const metadata = "metadata"

// nameIn is the name that a bundle gives itself; empty where that cannot be read, which the acceptance of the bundle tells.
func nameIn(files bundle.Files) string {
	var is struct{ Name string }
	if yaml.Unmarshal(files[bundle.BundleFile], &is) != nil {
		return ""
	}
	return is.Name
}

// child is the value of a key of a mapping; nil where there is none, and where the node is nil or no mapping.
func child(n *yaml.Node, key string) *yaml.Node {
	_, value := field(n, key)
	return value
}

// field is a key of a mapping with its value; both are nil where child is.
func field(n *yaml.Node, name string) (key, value *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}
