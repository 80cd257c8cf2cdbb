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

// receiver counts what belongs to one type of one package.
type receiver struct {
	methods, fields int
}

// measure returns the parts of the files, by path, in no order. A file that does not parse is left to the compiler.
func measure(files map[string][]byte) []part {
	var parts []part
	packages := map[string]int{}
	types := map[string]*receiver{}
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
					of(types, path.Dir(name)+"."+r).methods++
				}
			case *ast.GenDecl:
				countFields(types, path.Dir(name), d)
			}
		}
	}
	for name, lines := range packages {
		parts = append(parts, part{name, "lines", lines, maxPackage, "split it by the questions that it answers"})
	}
	for name, t := range types {
		parts = append(parts, part{name, "methods", t.methods, maxMethods, "let pure functions over values answer for it"})
		if t.methods > manyMethods {
			parts = append(parts, part{name, "fields", t.fields, maxFields, "let parts of it be values of their own"})
		}
	}
	return parts
}

func of(types map[string]*receiver, name string) *receiver {
	if types[name] == nil {
		types[name] = &receiver{}
	}
	return types[name]
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
	expr := d.Recv.List[0].Type
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

func countFields(types map[string]*receiver, folder string, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		s, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, f := range s.Fields.List {
			of(types, folder+"."+t.Name.Name).fields += max(1, len(f.Names))
		}
	}
}
