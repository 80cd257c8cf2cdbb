// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
)

// part is one measured thing: a receiver, a struct, a function, a file or a package.
type part struct {
	name   string // the folder, and within it the file or the identifier
	unit   string // what size counts
	size   int
	limit  int
	remedy string
}

// skippedFolders hold no code of the program itself. A pattern of path.Match for each.
var skippedFolders = []string{"api", "bin", "test", "redfish/emulator", ".*", "*/testdata", "*/*/testdata", "*/*/*/testdata"}

func skipsFolder(name string) bool {
	if name == "." {
		return false
	}
	return slices.ContainsFunc(skippedFolders, func(pattern string) bool {
		matches, err := path.Match(pattern, name)
		return err == nil && matches
	})
}

func isSource(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
}

func isGenerated(text []byte) bool {
	return bytes.Contains(text, []byte("\n"+generatedMarker)) || bytes.HasPrefix(text, []byte(generatedMarker))
}

// receiver is what belongs to one type of one package: its methods by name, and the types of the package that it embeds.
type receiver struct {
	methods  []string
	embedded []string
	fields   int
}

// receivers are the types of the tree, by folder and name.
type receivers map[string]*receiver

func (all receivers) of(name string) *receiver {
	if all[name] == nil {
		all[name] = &receiver{}
	}
	return all[name]
}

// promoted is the names of the methods of a type, those included that it gets from what it embeds.
func (all receivers) promoted(name string, methods map[string]bool, seen map[string]bool) map[string]bool {
	t := all[name]
	if t == nil || seen[name] {
		return methods
	}
	seen[name] = true
	for _, m := range t.methods {
		methods[m] = true
	}
	for _, e := range t.embedded {
		all.promoted(e, methods, seen)
	}
	return methods
}

// measure returns the parts of the files, by path, in no order. A file that does not parse is left to the compiler.
func measure(files map[string][]byte) []part {
	var parts []part
	packages := map[string]int{}
	types := receivers{}
	for name, text := range files {
		lines := bytes.Count(text, []byte("\n"))
		packages[path.Dir(name)] += lines
		parts = append(parts, part{name, "lines", lines, maxFile, "give a concept in it a file of its own"})
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				parts = append(parts, function(set, path.Dir(name), d))
				if r := receiverOf(d); r != "" {
					t := types.of(path.Dir(name) + "." + r)
					t.methods = append(t.methods, d.Name.Name)
				}
			case *ast.GenDecl:
				countTypes(types, path.Dir(name), d)
			}
		}
	}
	for name, lines := range packages {
		parts = append(parts, part{name, "lines", lines, maxPackage, "split it by the questions that it answers"})
	}
	for name, t := range types {
		all := len(types.promoted(name, map[string]bool{}, map[string]bool{}))
		parts = append(parts, part{name, "methods", all, maxMethods, "let pure functions over values answer for it"})
		if len(t.methods) > manyMethods {
			parts = append(parts, part{name, "fields", t.fields, maxFields, "let parts of it be values of their own"})
		}
	}
	return parts
}

// function measures the lines of a body , its comments included.
func function(set *token.FileSet, folder string, d *ast.FuncDecl) part {
	name := d.Name.Name
	if r := receiverOf(d); r != "" {
		name = r + "." + name
	}
	lines := 0
	if d.Body != nil {
		lines = set.Position(d.Body.Rbrace).Line - set.Position(d.Body.Lbrace).Line - 1
	}
	return part{folder + "." + name, "lines", lines, maxFunction, "take a step of it out by name"}
}

// receiverOf is the name of the type that a method belongs to; empty for a function.
func receiverOf(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	return typeName(d.Recv.List[0].Type)
}

// typeName is the name of a type of the same package, by value or by pointer; empty for any other.
func typeName(expr ast.Expr) string {
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.ParenExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// countTypes notes the fields of structs, what they embed, and the methods of interfaces.
func countTypes(types receivers, folder string, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		r := types.of(folder + "." + t.Name.Name)
		switch declared := t.Type.(type) {
		case *ast.StructType:
			for _, f := range declared.Fields.List {
				r.fields += max(1, len(f.Names))
				r.embed(folder, f)
			}
		case *ast.InterfaceType:
			for _, f := range declared.Methods.List {
				for _, name := range f.Names {
					r.methods = append(r.methods, name.Name)
				}
				r.embed(folder, f)
			}
		}
	}
}

// embed notes a field without a name whose type is of the same package.
func (r *receiver) embed(folder string, f *ast.Field) {
	if name := typeName(f.Type); len(f.Names) == 0 && name != "" {
		r.embedded = append(r.embedded, folder+"."+name)
	}
}
