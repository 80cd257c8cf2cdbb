// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// This program writes facts_generated.go: for each fact, by its position, the field that holds its value. It reads the
// source of facts.go, so that it runs also while what it wrote is out of date.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"log"
	"os"
	"reflect"
	"strconv"
	"strings"
)

const header = `// SPDX-License-Identifier: Apache-2.0

// Code generated from facts.go by go generate. DO NOT EDIT.

package policies

import "github.com/metalaw/metalaw/engine"

// Fact implements engine.Facts. An enum with a word outside its set is Missing, so that a rule which reads it halts.
func (f *Facts) Fact(i int) engine.Value {
	switch i {
`

// sets declares the words of each enum.
var sets []string

func main() {
	file, err := parser.ParseFile(token.NewFileSet(), "facts.go", nil, 0)
	if err != nil {
		log.Fatal(err)
	}
	groups := map[string]*ast.StructType{}
	for _, d := range file.Decls {
		general, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range general.Specs {
			if named, ok := s.(*ast.TypeSpec); ok {
				if fields, ok := named.Type.(*ast.StructType); ok {
					groups[named.Name.Name] = fields
				}
			}
		}
	}
	out := bytes.NewBufferString(header)
	position := 0
	for _, group := range groups["Facts"].Fields.List {
		for _, field := range groups[group.Type.(*ast.Ident).Name].Fields.List {
			path := "f." + nameOf(group) + "." + nameOf(field)
			fmt.Fprintf(out, "\tcase %d:\n\t\treturn %s\n", position, value(path, field))
			position++
		}
	}
	fmt.Fprint(out, "\tdefault:\n\t\treturn engine.Value{}\n\t}\n}\n")
	fmt.Fprintf(out, "\nvar (\n\t%s\n)\n", strings.Join(sets, "\n\t"))
	text, err := format.Source(out.Bytes())
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("facts_generated.go", text, 0o644); err != nil {
		log.Fatal(err)
	}
}

// nameOf is the name of a field. A fact has a field, and a tag, of its own.
func nameOf(field *ast.Field) string {
	if len(field.Names) != 1 {
		log.Fatalf("facts.go: a field of the type %v has %d names; each fact takes a line of its own", field.Type, len(field.Names))
	}
	return field.Names[0].Name
}

// value is the expression that makes an engine.Value of a field.
func value(path string, field *ast.Field) string {
	quoted, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		log.Fatal(err)
	}
	tag := reflect.StructTag(quoted)
	_, option, _ := strings.Cut(tag.Get("fact"), ",")
	words := tag.Get("enum")
	var typed bytes.Buffer
	if err := format.Node(&typed, token.NewFileSet(), field.Type); err != nil {
		log.Fatal(err)
	}
	switch kind := typed.String(); {
	case words == "*":
		return "engine.StringValue(" + path + ")"
	case words == "@operations":
		return "oneOf(" + path + ", operationWords)"
	case words != "":
		list := strings.Split(words, ",")
		for i, w := range list {
			list[i] = strconv.Quote(w)
		}
		group, name, _ := strings.Cut(strings.TrimPrefix(path, "f."), ".")
		name = strings.ToLower(group) + name + "Words"
		sets = append(sets, name+" = []string{"+strings.Join(list, ", ")+"}")
		return "oneOf(" + path + ", " + name + ")"
	case option == "age":
		return "engine.AgeValue(" + path + ")"
	case kind == "time.Duration":
		return "engine.DurationValue(" + path + ")"
	case kind == "[]string":
		return "engine.SetValue(" + path + ")"
	case kind == "bool":
		return "engine.BoolValue(" + path + ")"
	case kind == "int64":
		return "engine.IntValue(" + path + ")"
	case kind == "string":
		return "engine.StringValue(" + path + ")"
	default:
		log.Fatalf("%s has the type %s, of which no fact can be", path, kind)
		return ""
	}
}
