// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// source is the code of some folders, without tests.
type source struct {
	files []*file
	// constants are the string constants by the folder of their package and their name, such as api/v1alpha1.StateError.
	constants map[string]string
	// wrong is the first constant whose comment is not in form.
	wrong error
}

// module is what the import paths of the repository's packages begin with.
const module = "github.com/metalaw/metalaw/"

// The packages of the API. Both are called v1alpha1.
const (
	apiFolder       = "api/v1alpha1"
	policyAPIFolder = "api/policy/v1alpha1"
)

type file struct {
	pkg string
	// path is relative to the repository.
	path string
	// imports are the folders of the repository's packages by the names that they have in this file.
	imports map[string]string
	ast     *ast.File
}

// folder is that of the file's package.
func (f *file) folder() string { return path.Dir(f.path) }

// refersTo is the key in source.constants of what an expression names; empty where it names nothing of the repository.
func (f *file) refersTo(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return f.folder() + "." + e.Name
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && f.imports[x.Name] != "" {
			return f.imports[x.Name] + "." + e.Sel.Name
		}
	}
	return ""
}

// importsOf are the imports of a file from this repository.
func importsOf(parsed *ast.File) map[string]string {
	imports := map[string]string{}
	for _, i := range parsed.Imports {
		folder, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module)
		if !ours {
			continue
		}
		name := path.Base(folder)
		if i.Name != nil {
			name = i.Name.Name
		}
		imports[name] = folder
	}
	return imports
}

// constant is one documented string constant.
type constant struct {
	name, value, doc string
	file             *file
	// block is the comment of the const declaration around it.
	block string
}

// parseFolders reads all Go files below some folders of the repository. A folder that ends in a file name reads that
// file alone.
func parseFolders(root string, folders ...string) (*source, error) {
	s := &source{constants: map[string]string{}}
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(at string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(at, ".go") || strings.HasSuffix(at, "_test.go") {
				return err
			}
			// A folder may lie below another one that was asked for.
			if slices.ContainsFunc(s.files, func(f *file) bool { return filepath.Join(root, f.path) == at }) {
				return nil
			}
			return s.parse(root, at)
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(s.files, func(a, b *file) int { return cmp.Compare(a.path, b.path) })
	s.resolve()
	return s, nil
}

func (s *source) parse(root, at string) error {
	text, err := os.ReadFile(at)
	if err != nil {
		return err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), at, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(root, at)
	if err != nil {
		return err
	}
	s.files = append(s.files, &file{pkg: parsed.Name.Name, path: filepath.ToSlash(name), imports: importsOf(parsed), ast: parsed})
	return nil
}

// resolve learns the values of all constants; one may be written with others, so that it takes a few turns.
func (s *source) resolve() {
	for range 3 {
		for _, f := range s.files {
			eachConstant(f, func(_ *ast.GenDecl, spec *ast.ValueSpec, i int) {
				if value, ok := s.evaluate(f, spec.Values[i]); ok {
					s.constants[f.refersTo(spec.Names[i])] = value
				}
			})
		}
	}
}

func eachConstant(f *file, do func(*ast.GenDecl, *ast.ValueSpec, int)) {
	for _, d := range f.ast.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST {
			continue
		}
		for _, sp := range decl.Specs {
			if spec, ok := sp.(*ast.ValueSpec); ok {
				for i := range spec.Values {
					do(decl, spec, i)
				}
			}
		}
	}
}

// strings lists the exported string constants that pass, in the order in which they are written.
func (s *source) strings(passes func(f *file, name string) bool) []constant {
	var all []constant
	for _, f := range s.files {
		eachConstant(f, func(decl *ast.GenDecl, spec *ast.ValueSpec, i int) {
			name := spec.Names[i].Name
			value, ok := s.constants[f.folder()+"."+name]
			if !ok || !ast.IsExported(name) || !passes(f, name) {
				return
			}
			c := constant{name: name, value: value, file: f, doc: oneLine(spec.Doc.Text()), block: oneLine(decl.Doc.Text())}
			if c.doc == "" && !decl.Lparen.IsValid() {
				c.doc, c.block = c.block, ""
			}
			all = append(all, c)
		})
	}
	return all
}

// fromCalls reads every call in some files; read says whether a call is one that it is about.
func fromCalls[T any](s *source, files []*file, read func(*source, *file, *ast.CallExpr) (T, bool, error)) ([]T, error) {
	var all []T
	var wrong error
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				one, is, err := read(s, f, call)
				wrong = cmp.Or(wrong, err)
				if is {
					all = append(all, one)
				}
			}
			return true
		})
	}
	return all, wrong
}

// evaluate gives the text of an expression of literals and known constants.
func (s *source) evaluate(f *file, e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return e.Value, e.Kind == token.INT
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.Ident, *ast.SelectorExpr:
		value, ok := s.constants[f.refersTo(e)]
		return value, ok
	case *ast.BinaryExpr:
		left, ok := s.evaluate(f, e.X)
		right, also := s.evaluate(f, e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// sentence turns the comment of a constant, "ReasonX: why." or "AnnotationX says why.", into a text that reads on from the
// constant's value. Names of other constants become their values.
func (s *source) sentence(c constant) string {
	rest, ok := strings.CutPrefix(c.doc, c.name)
	if !ok || rest == "" {
		s.wrong = cmp.Or(s.wrong, fmt.Errorf("%s: the comment of %s does not begin with its name", c.file.path, c.name))
	}
	rest = strings.TrimSpace(strings.TrimPrefix(rest, ":"))
	return s.named(c.file, strings.TrimPrefix(rest, ", "))
}

var identifier = regexp.MustCompile(`[A-Z][a-z]+[A-Z]\w+`)

// named sets the values of constants in the place of their Go names: of those of the file's own package, and of the API.
func (s *source) named(f *file, text string) string {
	return identifier.ReplaceAllStringFunc(text, func(word string) string {
		for _, folder := range []string{f.folder(), apiFolder, policyAPIFolder} {
			if value, ok := s.constants[folder+"."+word]; ok {
				return code(value)
			}
		}
		return word
	})
}
