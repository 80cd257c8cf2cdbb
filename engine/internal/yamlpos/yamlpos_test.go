// SPDX-License-Identifier: Apache-2.0

package yamlpos

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// value is the value of the first key of a document.
func value(t *testing.T, f *File) *yaml.Node {
	t.Helper()
	if f.Root == nil || len(f.Root.Content) < 2 {
		t.Fatalf("it cannot be read: %v", f.Found)
	}
	return f.Root.Content[1]
}

// Each text marks the place that is looked for with a caret above the character x.
func TestAPlaceInATextIsAPlaceInTheFile(t *testing.T) {
	for name, c := range map[string]struct {
		source       string
		line, column int
	}{
		"plain":                      {"a: one x", 1, 8},
		"plain, continued":           {"a: one\n    two x", 2, 9},
		"double quotes":              {`a: "one x"`, 1, 9},
		"escapes in double quotes":   {`a: "\"\u0041\x41\" x"`, 1, 20},
		"an escaped line end":        {"a: \"one \\\n    x\"", 2, 5},
		"single quotes":              {"a: 'it''s x'", 1, 11},
		"a literal block":            {"a: |\n  one\n  x", 3, 3},
		"a literal block, indented":  {"a: |\n  one\n    two x", 3, 9},
		"a literal block, blank":     {"a: |\n\n  one\n\n  x", 5, 3},
		"a folded block":             {"a: >\n  one\n  two\n  x", 4, 3},
		"a folded block, stripped":   {"a: >-\n    one\n    two x", 3, 9},
		"beyond the Latin alphabet":  {"a: größe x", 1, 10},
		"a block with an indication": {"a: |2\n    one\n  x", 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			f := Parse("f.yaml", []byte(c.source))
			n := value(t, f)
			before, _, ok := strings.Cut(n.Value, "x")
			if !ok {
				t.Fatalf("no x in %q", n.Value)
			}
			lines := strings.Split(before, "\n")
			line, column := f.Position(n, len(lines), len([]rune(lines[len(lines)-1])))
			if line != c.line || column != c.column {
				t.Errorf("got %d:%d, want %d:%d", line, column, c.line, c.column)
			}
		})
	}
}

func TestWhatCannotBePlacedIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ source, want string }{
		"an alias":                {"a: &x 1\nb: *x", "f.yaml:2:4: error: the alias *x repeats what is written elsewhere (write the value out here) [yaml-alias]"},
		"a tag":                   {"a: !!str 1", "f.yaml:1:4: error: the tag !!str changes what the value is (take the tag away and write the value as it is meant) [yaml-tag]"},
		"a bare exclamation mark": {"a: !held", `f.yaml:1:4: error: the value begins with !, which YAML takes for a tag (put the whole value in double quotes, such as when: "!held") [yaml-tag]`},
		"a tab":                   {"a:\n\tb: 1", "f.yaml:2:1: error: a tab is used for indentation (YAML indents with spaces only) [yaml-tab]"},
		"nothing":                 {"", "f.yaml:1:1: error: the file is empty (write the file or leave its key out) [yaml-empty]"},
		"a quote behind letters of several bytes": {"x: 1\n- {grüße: \"ä\", a: \"b\" in c}\n", `f.yaml:2:19: error: the value begins with a quote, so that YAML takes the next quote for its end (write marked("Dirty") instead of "Dirty" in lifecycle.marks, or put the whole value in single quotes) [yaml-quote]`},
		"a quote at the beginning":                {"x: 1\na: \"b\" in c\n", `f.yaml:2:4: error: the value begins with a quote, so that YAML takes the next quote for its end (write marked("Dirty") instead of "Dirty" in lifecycle.marks, or put the whole value in single quotes) [yaml-quote]`},
		"a bracket that stays open":               {"x: 1\na: {b: 1\nc: 2\n", "f.yaml:2:1: error: YAML cannot be read on from here: did not find expected ',' or '}' (check indentation, brackets and quotes in this line and the next) [yaml-syntax]"},
		"a second document":                       {"a: 1\n---\nb: 1\n", "f.yaml:2:1: error: the file holds more than one YAML document (keep one document per file) [yaml-documents]"},
		"a colon in a plain value":                {"x: 1\na: b: c\n", "f.yaml:2:1: error: YAML cannot be read on from here: mapping values are not allowed in this context (check indentation, brackets and quotes in this line and the next) [yaml-syntax]"},
		"an indentation that is off, far down":    {"a:\n  b: 1\n  e:\n    f: 1\n    g: [1,\n     2]\n   c: 2\n  d: 3\n", "f.yaml:7:1: error: YAML cannot be read on from here: did not find expected key (check indentation, brackets and quotes in this line and the next) [yaml-syntax]"},
		"a key more after the end":                {"a:\n  b: 1\nc: 1\n\n  late:\n    x: 1\n", "f.yaml:5:1: error: YAML cannot be read on from here: mapping values are not allowed in this context (check indentation, brackets and quotes in this line and the next) [yaml-syntax]"},
		"a quote that stays open":                 {"a:\n- {b: \"!c && d, e: 1}\n- {b: 2}\n- {b: \"!x\"}\n", "f.yaml:2:1: error: a quote that begins in this line is not ended (end the quote, or take it away) [yaml-syntax]"},
		"Latin-1":                                 {"a: 1\nb: gr\xf6\xdfe\n", "f.yaml:2:6: error: here is a byte that is no UTF-8 text (put it in again by hand, or save the file as UTF-8) [yaml-character]"},
		"a NUL":                                   {"a: 1\nb: \x00\n", "f.yaml:2:4: error: here is the control character U+0000 (take it out) [yaml-character]"},
		"a no-break space":                        {"a:\n \u00a0b: 1\n", "f.yaml:2:2: error: the indentation holds U+00A0, which looks like a space (indent with plain spaces only) [yaml-character]"},
		"an indentation that is off":              {"a:\n  b: 1\n c: 2\n", "f.yaml:3:1: error: YAML cannot be read on from here: did not find expected key (check indentation, brackets and quotes in this line and the next) [yaml-syntax]"},
	} {
		t.Run(name, func(t *testing.T) {
			f := Parse("f.yaml", []byte(c.source))
			if f.Root != nil || len(f.Found) != 1 || f.Found[0].String() != c.want {
				t.Errorf("got %v\nwant %s", f.Found, c.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a: |\n  b\n", 1, 0)
	f.Add("a: \"\\u0041\\\n  b\"\n", 1, 2)
	f.Add("- {a: 'b''c', d: !e f}\n--- \n&x *x", 1, 9)
	f.Fuzz(func(t *testing.T, source string, line, column int) {
		file := Parse("f.yaml", []byte(source))
		for _, d := range file.Found {
			if d.Line < 1 || d.Column < 1 {
				t.Errorf("no place: %s", d)
			}
		}
		var walk func(*yaml.Node)
		walk = func(n *yaml.Node) {
			if l, c := file.Position(n, line%100, column%1000); n.Kind == yaml.ScalarNode && (l < 1 || c < 1) {
				t.Errorf("%q has the place %d:%d", n.Value, l, c)
			}
			for _, child := range n.Content {
				walk(child)
			}
		}
		if file.Root != nil {
			walk(file.Root)
		}
	})
}
