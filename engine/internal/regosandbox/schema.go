// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Schema makes the JSON schema of an input from its Go struct, so that a policy that names an unknown field does not
// compile. The name of a field is its json tag, its description the tag "doc", its closed set of values the tag "enum".
// Every field is required: the input always holds all of them, empty where nothing is known.
//
// The types that an input may use are fixed when metalaw is written; any other one panics, which a unit test of the
// input's package would meet first.
func Schema(input any) map[string]any { return schemaOf(reflect.TypeOf(input)) }

func schemaOf(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Interface:
		return map[string]any{}
	case reflect.Struct:
		properties := map[string]any{}
		required := []any{}
		for i := range t.NumField() {
			field := t.Field(i)
			property := schemaOf(field.Type)
			if doc := field.Tag.Get("doc"); doc != "" {
				property["description"] = doc
			}
			if enum := field.Tag.Get("enum"); enum != "" {
				values := []any{}
				for _, value := range strings.Split(enum, ",") {
					values = append(values, value)
				}
				property["enum"] = values
			}
			properties[field.Tag.Get("json")] = property
			required = append(required, field.Tag.Get("json"))
		}
		return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	}
	panic(fmt.Sprintf("an input of a policy has a field of type %s", t))
}

// Value turns an input struct into the value that Rego reads, by the rules of Schema, without going through JSON. A nil
// slice is an empty array, a nil map an empty object.
func Value(input any) *ast.Term { return valueOf(reflect.ValueOf(input)) }

func valueOf(v reflect.Value) *ast.Term {
	switch v.Kind() {
	case reflect.Bool:
		return ast.BooleanTerm(v.Bool())
	case reflect.String:
		return ast.StringTerm(v.String())
	case reflect.Int, reflect.Int32, reflect.Int64:
		return ast.IntNumberTerm(int(v.Int()))
	case reflect.Slice:
		terms := make([]*ast.Term, v.Len())
		for i := range terms {
			terms[i] = valueOf(v.Index(i))
		}
		return ast.ArrayTerm(terms...)
	case reflect.Map:
		pairs := make([][2]*ast.Term, 0, v.Len())
		for it := v.MapRange(); it.Next(); {
			pairs = append(pairs, [2]*ast.Term{ast.StringTerm(it.Key().String()), valueOf(it.Value())})
		}
		return ast.ObjectTerm(pairs...)
	case reflect.Struct:
		pairs := make([][2]*ast.Term, v.NumField())
		for i := range pairs {
			pairs[i] = [2]*ast.Term{ast.StringTerm(v.Type().Field(i).Tag.Get("json")), valueOf(v.Field(i))}
		}
		return ast.ObjectTerm(pairs...)
	}
	panic(fmt.Sprintf("an input of a policy has a value of type %s", v.Type()))
}
