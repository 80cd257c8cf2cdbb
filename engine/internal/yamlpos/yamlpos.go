// SPDX-License-Identifier: Apache-2.0

// Package yamlpos reads YAML strictly and keeps the place of every key and value, so that a finding about a bundle can
// name file, line and column.
package yamlpos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/diag"
)

// File is one YAML document together with its source lines.
type File struct {
	Name  string
	Root  *yaml.Node
	lines []string
	// Found collects what is wrong, in the order in which it is met.
	Found diag.List
}

// Parse reads one document. A file with a syntax error, with no content, with more than one document, or with aliases and
// tags, which would leave a finding without one place, has a nil Root and says why in Found.
func Parse(name string, data []byte) *File {
	f := &File{Name: name, lines: strings.Split(string(data), "\n")}
	if f.unreadable() {
		return f
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := decoder.Decode(&doc); err != nil {
		f.syntaxError(err)
		return f
	}
	var second yaml.Node
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		f.addAt(max(second.Line, 1), max(second.Column, 1), "yaml-documents", "", "the file holds more than one YAML document",
			"keep one document per file")
		return f
	}
	if len(doc.Content) != 1 {
		f.syntaxError(io.EOF)
		return f
	}
	if !f.plain(doc.Content[0]) {
		return f
	}
	f.Root = doc.Content[0]
	return f
}

// plain reports aliases and tags. A value behind an alias would stand in two places at once, and a tag makes another value
// of what is written.
func (f *File) plain(n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		f.Errorf(n, "yaml-alias", "", "write the value out here", "the alias *%s repeats what is written elsewhere", n.Value)
		return false
	case n.Style&yaml.TaggedStyle != 0:
		if strings.HasPrefix(n.Tag, "!!") {
			f.Errorf(n, "yaml-tag", "", "take the tag away and write the value as it is meant", "the tag %s changes what the value is", n.Tag)
		} else {
			f.Errorf(n, "yaml-tag", "", exclamationHint, "the value begins with !, which YAML takes for a tag")
		}
		return false
	}
	ok := true
	for _, child := range n.Content {
		ok = f.plain(child) && ok
	}
	return ok
}

// quotedBeginning reports an expression that starts with a quote, in the block that YAML could not read.
func (f *File) quotedBeginning(from int) bool {
	for line := max(from-1, 1); line <= len(f.lines); line++ {
		if m := quoted.FindStringSubmatchIndex(f.lines[line-1]); m != nil {
			f.addAt(line, column(f.lines[line-1], m[4]), "yaml-quote", "",
				"the value begins with a quote, so that YAML takes the next quote for its end",
				`write marked("Dirty") instead of "Dirty" in lifecycle.marks, or put the whole value in single quotes`)
			return true
		}
	}
	return false
}

// exclamation reports an expression that starts with an exclamation mark, in a line that YAML could not read.
func (f *File) exclamation(line int) bool {
	if line > len(f.lines) {
		return false
	}
	m := negated.FindStringSubmatchIndex(f.lines[line-1])
	if m == nil {
		return false
	}
	f.addAt(line, column(f.lines[line-1], m[2]), "yaml-tag", "", "the value begins with !, which YAML takes for a tag", exclamationHint)
	return true
}

// column is the column of a byte of a line, in letters.
func column(line string, at int) int { return utf8.RuneCountInString(line[:at]) + 1 }

const exclamationHint = `put the whole value in double quotes, such as when: "!held"`

// maxFound bounds what is said of one file: an author with more mistakes than this made one of them very often.
const maxFound = 200

func (f *File) addAt(line, column int, code, rule, message, hint string) {
	f.add(diag.Diagnostic{Severity: diag.Error, Code: code, File: f.Name, Line: line, Column: column, Rule: rule, Message: message, Hint: hint})
}

func (f *File) add(d diag.Diagnostic) {
	if len(f.Found) < maxFound {
		f.Found = append(f.Found, d)
	}
}

// Errorf records an error at a node.
func (f *File) Errorf(n *yaml.Node, code, rule, hint, format string, args ...any) {
	line, column := 1, 1
	if n != nil {
		line, column = n.Line, n.Column
	}
	f.addAt(line, column, code, rule, fmt.Sprintf(format, args...), hint)
}

// Warnf records a warning at a node.
func (f *File) Warnf(n *yaml.Node, code, rule, hint, format string, args ...any) {
	f.add(diag.Diagnostic{Severity: diag.Warning, Code: code, File: f.Name, Line: n.Line, Column: n.Column, Rule: rule,
		Message: fmt.Sprintf(format, args...), Hint: hint})
}

// Told says that something is found at a node already: what else would be said of it follows from that.
func (f *File) Told(n *yaml.Node) bool {
	return slices.ContainsFunc(f.Found, func(d diag.Diagnostic) bool { return d.Line == n.Line && d.Column == n.Column })
}

// ErrorIn records an error inside the text of a scalar: line counts from 1 and column from 0, both within the text, the
// way CEL reports them.
func (f *File) ErrorIn(n *yaml.Node, line, column int, code, rule, hint, message string) {
	l, c := f.Position(n, line, column)
	f.addAt(l, c, code, rule, message, hint)
}

// Field is one entry of a mapping.
type Field struct {
	Name  string
	Key   *yaml.Node
	Value *yaml.Node
}

// Fields returns the entries of a mapping in file order and reports duplicate keys, keys that are not in allowed, and a
// node that is not a mapping. An empty allowed list allows every key. A nil node has no fields.
func (f *File) Fields(n *yaml.Node, what string, allowed ...string) []Field {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		f.Errorf(n, "yaml-type", "", "write key: value pairs", "%s must be a mapping", what)
		return nil
	}
	seen := map[string]int{}
	var fields []Field
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if first, dup := seen[key.Value]; dup {
			f.Errorf(key, "yaml-duplicate-key", "", fmt.Sprintf("it is set first in line %d; keep one of the two", first),
				"%s has the key %q twice", what, key.Value)
			continue
		}
		seen[key.Value] = key.Line
		if len(allowed) > 0 && !slices.Contains(allowed, key.Value) {
			f.Errorf(key, "yaml-unknown-key", "", "known keys: "+strings.Join(allowed, ", "), "%s has no key %q", what, key.Value)
			continue
		}
		fields = append(fields, Field{Name: key.Value, Key: key, Value: value})
	}
	return fields
}

// Items returns the entries of a sequence. A node that is not a sequence is reported; a nil node has no items.
func (f *File) Items(n *yaml.Node, what string) []*yaml.Node {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		f.Errorf(n, "yaml-type", "", "write a list", "%s must be a list", what)
		return nil
	}
	return n.Content
}

var booleanWords = regexp.MustCompile(`^(?i:on|off|yes|no|y|n)$`)

// Text returns the text of a scalar. A node that is no scalar is reported, as is a bare On, Off, Yes or No, which some
// YAML readers take for a boolean.
func (f *File) Text(n *yaml.Node, what string) string {
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode {
		f.Errorf(n, "yaml-type", "", "write one value", "%s must be text", what)
		return ""
	}
	if n.Style == 0 && booleanWords.MatchString(n.Value) {
		f.Errorf(n, "yaml-bare-boolean", "", fmt.Sprintf("write %q in quotes", n.Value),
			"%s is a bare %s, which YAML readers take for a boolean", what, n.Value)
	}
	return n.Value
}

// Only reads a field that can hold one word only.
func (f *File) Only(field Field, code, word string) {
	if text := f.Text(field.Value, field.Name); text != word {
		f.Errorf(field.Value, code, "", "write "+word, "unknown %s %q", field.Name, text)
	}
}

// Texts returns the texts of a list of scalars.
func (f *File) Texts(n *yaml.Node, what string) []string {
	var texts []string
	for _, item := range f.Items(n, what) {
		texts = append(texts, f.Text(item, what))
	}
	return texts
}

// Bool returns a boolean scalar; anything else than a bare true or false is reported.
func (f *File) Bool(n *yaml.Node, what string) bool {
	if n == nil {
		return false
	}
	if n.Kind != yaml.ScalarNode || n.Style != 0 || (n.Value != "true" && n.Value != "false") {
		f.Errorf(n, "yaml-type", "", "write true or false, without quotes", "%s must be true or false", what)
		return false
	}
	return n.Value == "true"
}
