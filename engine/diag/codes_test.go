// SPDX-License-Identifier: Apache-2.0

package diag

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var codeForm = regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)+$`)

// notOfBundles are words of the same form that are no findings: why a server may not be claimed.
var notOfBundles = []string{"selection/codes.go", "placement/codes.go"}

// sources are the folders and files whose texts are searched for codes: the engine's own, and what else finds something in a bundle.
var sources = []string{
	"..",
	filepath.Join("..", "..", "macprefixes"),
	filepath.Join("..", "..", "cmd", "metalaw", "cli", "policy", "source"),
}

// users are folders that find something in a bundle as well, among many texts that are none: there the codes of literal findings count.
var users = []string{
	filepath.Join("..", "..", "cmd", "metalaw", "cli", "policy"),
	filepath.Join("..", "..", "controllers"),
	filepath.Join("..", "..", "webhooks"),
}

// textsInSource lists every text that the sources hold, with the file of each.
func textsInSource(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	take := func(n ast.Node, file string) {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				found[text] = file
			}
		}
	}
	inspect(t, sources, take)
	inspect(t, users, func(n ast.Node, file string) {
		if code := codeOf(n); code != nil {
			take(code, file)
		}
	})
	return found
}

// codeOf is the code of a finding that is written as a literal; nil for anything else.
func codeOf(n ast.Node) (code ast.Expr) {
	finding, ok := n.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	graded := false
	for _, e := range finding.Elts {
		field, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return nil
		}
		switch key, _ := field.Key.(*ast.Ident); {
		case key == nil:
			return nil
		case key.Name == "Severity":
			graded = true
		case key.Name == "Code":
			code = field.Value
		}
	}
	if !graded {
		return nil
	}
	return code
}

// inspect shows every node of the code in some folders.
func inspect(t *testing.T, roots []string, see func(n ast.Node, file string)) {
	t.Helper()
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			slash := filepath.ToSlash(path)
			if slices.ContainsFunc(notOfBundles, func(not string) bool { return strings.HasSuffix(slash, not) }) {
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				see(n, slash)
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// row is a code in the page, with what is wrong, the severity where it is no error, and the remedy.
var row = regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\| (.*?)(?: \\((warning|info)\\))? \\| (.*) \\|$")

func TestEveryCodeIsDocumentedAndEveryDocumentedCodeIsUsed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "diagnostics.md"))
	if err != nil {
		t.Fatal(err)
	}
	used, seen := textsInSource(t), map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		code := m[1]
		if used[code] == "" {
			t.Errorf("diagnostics.md documents %s, which nothing uses", code)
		}
		if seen[code] {
			t.Errorf("diagnostics.md documents %s twice", code)
		}
		seen[code] = true
		for _, sentence := range []string{m[2], m[4]} {
			if !strings.HasSuffix(sentence, ".") || strings.ToUpper(sentence[:1]) != sentence[:1] && sentence[0] >= 'a' {
				t.Errorf("%s: this is no sentence: %q", code, sentence)
			}
		}
	}
	for code, file := range used {
		if codeForm.MatchString(code) && !seen[code] {
			t.Errorf("%s uses the code %s, which diagnostics.md does not document", file, code)
		}
	}
}
