// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/yamlnode"
	"github.com/metalaw/metalaw/policies"
)

// document is a claim as it stands in a file.
type document struct {
	claim *v1alpha1.ServerClaim
	// file and line are where it begins.
	file string
	line int
	// wrong is what is wrong with it, each with its place.
	wrong []string
}

func (d *document) place() string { return fmt.Sprintf("%s:%d", d.file, d.line) }

// documents are what files hold.
type documents struct {
	all []document
	// others are the kinds of objects that are no claims.
	others []string
}

var yamlLine = regexp.MustCompile(`line (\d+): (.*)`)

// decode finds the claims of a file. An error says that the rest of the file cannot be read.
func decode(name string, text []byte) (documents, error) {
	var docs documents
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var root yaml.Node
		err := d.Decode(&root)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
				return docs, fmt.Errorf("%s:%s:1: error: %s", name, m[1], m[2])
			}
			return docs, fmt.Errorf("%s: %w", name, err)
		}
		if len(root.Content) == 0 || root.Content[0].Tag == "!!null" {
			continue
		}
		one := root.Content[0]
		if kind := textAt(one, "kind"); kind == "List" || kind == "ServerClaimList" {
			for _, item := range sequence(one, "items") {
				docs.add(name, text, item, kind == "ServerClaimList")
			}
			continue
		}
		docs.add(name, text, one, false)
	}
}

// add takes in one object.
func (d *documents) add(name string, text []byte, n *yaml.Node, certain bool) {
	kind, version := textAt(n, "kind"), textAt(n, "apiVersion")
	if kind != "" && kind != "ServerClaim" && !certain {
		d.others = append(d.others, kind)
		return
	}
	doc := document{file: name, line: n.Line, claim: &v1alpha1.ServerClaim{}}
	at := func(node *yaml.Node, format string, args ...any) {
		doc.wrong = append(doc.wrong, fmt.Sprintf("%s:%d:%d: error: ", name, node.Line, node.Column)+fmt.Sprintf(format, args...))
	}
	if want := v1alpha1.GroupVersion.String(); !certain && (kind == "" || version != want) {
		at(node(n, "apiVersion"), "it is no ServerClaim of %s: write apiVersion: %s and kind: ServerClaim", want, want)
	}
	doc.unmarshal(name, n, at)
	if len(doc.wrong) == 0 {
		doc.checkMeaning(name, text, n, at)
	}
	d.all = append(d.all, doc)
}

// unmarshal decodes strictly. A key that is there twice is wrong, and the first of the two is read, so that all else that is wrong
// is found as well.
func (d *document) unmarshal(name string, n *yaml.Node, at func(*yaml.Node, string, ...any)) {
	var value any
	read := asKubectl(n)
	once(read, at)
	if err := read.Decode(&value); err != nil {
		for _, m := range yamlLine.FindAllStringSubmatch(err.Error(), -1) {
			d.wrong = append(d.wrong, fmt.Sprintf("%s:%s:1: error: %s", name, m[1], m[2]))
		}
		if len(d.wrong) == 0 {
			at(n, "%v", err)
		}
		return
	}
	raw, err := json.Marshal(value)
	if err != nil {
		at(n, "it holds what JSON cannot say: %v", err)
		return
	}
	strict, err := kjson.UnmarshalStrict(raw, d.claim)
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType):
		m := mismatchOf(n, wrongType)
		at(m.place, "%s", m.words())
	case err != nil:
		at(n, "%v", err)
	}
	for _, one := range strict {
		field := n
		var placed kjson.FieldError
		if errors.As(one, &placed) {
			field = node(n, placed.FieldPath())
		}
		at(field, "%v", one)
	}
}

// asKubectl is a document with the values that kubectl makes of it.
func asKubectl(n *yaml.Node) *yaml.Node {
	read := *n
	if isBareBoolean(n) {
		read.Tag, read.Value = "!!bool", strconv.FormatBool(strings.ContainsAny(n.Value[:1], "yY") || strings.EqualFold(n.Value, "on"))
	}
	read.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		read.Content[i] = child
		if n.Kind != yaml.MappingNode || i%2 == 1 { // a key is text in any case
			read.Content[i] = asKubectl(child)
		}
	}
	return &read
}

// once takes the keys out of a document that are there already.
func once(n *yaml.Node, at func(*yaml.Node, string, ...any)) {
	if n.Kind == yaml.MappingNode {
		first, kept := map[string]int{}, []*yaml.Node(nil)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			line, twice := first[key.Value]
			if twice && key.Kind == yaml.ScalarNode && key.Tag != "!!merge" {
				at(key, "mapping key %q already defined at line %d", key.Value, line)
				continue
			}
			first[key.Value] = key.Line
			kept = append(kept, key, n.Content[i+1])
		}
		n.Content = kept
	}
	for _, child := range n.Content {
		once(child, at)
	}
}

// checkMeaning finds what has no meaning in what could be decoded: the selector and the placement.
func (d *document) checkMeaning(name string, text []byte, n *yaml.Node, at func(*yaml.Node, string, ...any)) {
	if _, err := policies.ClaimSpecOf(d.claim); err != nil {
		at(node(n, "spec.serverSelector"), "%v", err)
	}
	_, found := policies.PlacementOf(d.claim)
	value := yamlnode.Child(node(n, "metadata.annotations"), v1alpha1.PlacementAnnotation)
	for _, one := range found {
		line, column := 0, 0
		if value != nil {
			line, column = within(text, value, one.Line, one.Column)
		}
		said := one
		said.File, said.Line, said.Column = name, line, column
		if said.Severity == "error" {
			d.wrong = append(d.wrong, said.String())
		}
	}
}

// within is where a place in a text value stands in the file: exact in a block that keeps its lines, and else where the value
// begins.
func within(text []byte, value *yaml.Node, line, column int) (atLine, atColumn int) {
	if value.Style != yaml.LiteralStyle || line == 0 {
		return value.Line, value.Column
	}
	lines := strings.Split(string(text), "\n")
	indent := 0
	for _, first := range lines[min(value.Line, len(lines)):] {
		if trimmed := strings.TrimLeft(first, " "); trimmed != "" {
			indent = len(first) - len(trimmed)
			break
		}
	}
	return value.Line + line, indent + column
}

func textAt(n *yaml.Node, key string) string {
	if value := yamlnode.Child(n, key); value != nil {
		return value.Value
	}
	return ""
}

func sequence(n *yaml.Node, key string) []*yaml.Node {
	if value := yamlnode.Child(n, key); value != nil && value.Kind == yaml.SequenceNode {
		return value.Content
	}
	return nil
}

var step = regexp.MustCompile(`^([^.\[]+)|^\[(\d+)\]`)

// node is where a path such as spec.tolerations[0].key leads: to the key itself, or as far as the path can be followed.
func node(n *yaml.Node, path string) *yaml.Node {
	at := n
	for path != "" {
		path = strings.TrimPrefix(path, ".")
		m := step.FindStringSubmatch(path)
		if m == nil {
			return at
		}
		next, key := (*yaml.Node)(nil), (*yaml.Node)(nil)
		if i, err := strconv.Atoi(m[2]); err == nil && n.Kind == yaml.SequenceNode && i < len(n.Content) {
			next, key = n.Content[i], n.Content[i]
		} else if n.Kind == yaml.MappingNode {
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == m[1] {
					key, next = n.Content[i], n.Content[i+1]
				}
			}
		}
		if next == nil {
			return at
		}
		n, at, path = next, key, path[len(m[0]):]
		if path == "" && n.Kind == yaml.MappingNode && len(n.Content) > 0 {
			return n
		}
	}
	return at
}
