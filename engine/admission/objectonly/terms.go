// SPDX-License-Identifier: Apache-2.0

package objectonly

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// lists are the parts of a ServerClaim that are lists by its schema, behind object or oldObject.
var lists = []string{"spec.tolerations", "spec.serverSelector.matchExpressions", "metadata.finalizers", "metadata.ownerReferences"}

// operand translates a term.
func (s *scope) operand(term *ast.Term) operand {
	switch v := term.Value.(type) {
	case ast.Var:
		if known, ok := s.names[v]; ok {
			return known
		}
		if s.isRule(v) {
			return s.value(s.module.Package.Path.String()+"."+string(v), nil)
		}
		fail(fmt.Sprintf("the variable %s takes many values", v))
	case ast.Ref:
		return s.ref(v)
	case ast.Call:
		return s.call(v)
	case ast.Null, ast.Boolean, ast.Number, ast.String:
		return constant(v)
	case *ast.Array, ast.Object, ast.Set:
		if ast.IsConstant(v) {
			return constant(v)
		}
		if array, ok := v.(*ast.Array); ok {
			return s.array(array)
		}
	}
	fail(fmt.Sprintf("of %s", ast.ValueName(term.Value)))
	return operand{}
}

func (s *scope) array(array *ast.Array) operand {
	list, parts := operand{isList: true}, []string{}
	array.Foreach(func(term *ast.Term) {
		v := s.operand(term)
		list.defined = and(list.defined, v.defined)
		parts = append(parts, v.cel)
	})
	list.cel = "[" + strings.Join(parts, ", ") + "]"
	return list
}

func constant(v ast.Value) operand {
	_, isArray := v.(*ast.Array)
	_, isSet := v.(ast.Set)
	return operand{cel: literal(v), literal: v, isList: isArray || isSet}
}

// literal writes a constant. A set becomes a list.
func literal(v ast.Value) string {
	var parts []string
	part := func(term *ast.Term) { parts = append(parts, literal(term.Value)) }
	switch v := v.(type) {
	case ast.String:
		return quoted(string(v))
	case *ast.Array:
		v.Foreach(part)
	case ast.Set:
		v.Foreach(part)
	case ast.Object:
		v.Foreach(func(key, value *ast.Term) { parts = append(parts, literal(key.Value)+": "+literal(value.Value)) })
		return "{" + strings.Join(parts, ", ") + "}"
	default:
		return v.String()
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// quoted writes a string of CEL. JSON's escapes are CEL's, but for that of the slash, which is not made.
func quoted(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		fail("of a string that cannot be written")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// ref translates a reference: to the input, to a rule, or to a part of what has a name.
func (s *scope) ref(ref ast.Ref) operand {
	head, _ := ref[0].Value.(ast.Var)
	if known, ok := s.names[head]; ok {
		return s.follow(known, ref[1:])
	}
	switch {
	case ref.HasPrefix(ast.InputRootRef):
		return s.input(ref[1:])
	case ref.HasPrefix(ast.DefaultRootRef):
		return s.ruleRef(ref)
	case s.isRule(head):
		return s.follow(s.value(s.module.Package.Path.String()+"."+string(head), nil), ref[1:])
	}
	if full := s.imported(ref); full != nil {
		return s.ref(full)
	}
	fail(fmt.Sprintf("of %s", ref))
	return operand{}
}

// imported is a reference that begins with the name of an import, with what is imported instead; nil where there is none.
func (s *scope) imported(ref ast.Ref) ast.Ref {
	head, _ := ref[0].Value.(ast.Var)
	for _, one := range s.module.Imports {
		if path, ok := one.Path.Value.(ast.Ref); ok && one.Name() == head {
			return path.Concat(ref[1:])
		}
	}
	return nil
}

func (s *scope) ruleRef(ref ast.Ref) operand {
	for i := 2; i <= len(ref); i++ {
		if path := ref[:i].String(); len(s.rules[path]) > 0 {
			return s.follow(s.value(path, nil), ref[i:])
		}
	}
	fail(fmt.Sprintf("of %s", ref))
	return operand{}
}

func (s *scope) input(keys ast.Ref) operand {
	if len(keys) == 0 {
		fail("it uses the input as a whole")
	}
	name := literalText(keys[0])
	rest := keys[1:]
	switch name {
	case "kind":
		return s.follow(constant(ast.String(s.kind)), rest)
	case "operation":
		return s.follow(operand{cel: "request.operation"}, rest)
	case "object":
		return s.follow(operand{cel: "object", path: []string{}}, rest)
	case "oldObject": // null on CREATE, where Rego sees an empty object
		return s.follow(operand{cel: "(oldObject == null ? {} : oldObject)", path: []string{}}, rest)
	case "user":
		switch {
		case len(rest) == 1 && literalText(rest[0]) == "name":
			return operand{cel: `request.userInfo.?username.orValue("")`}
		case len(rest) == 1 && literalText(rest[0]) == "groups":
			return operand{cel: "request.userInfo.?groups.orValue([])", isList: true}
		}
	case "facts":
		fail("it reads input.facts, which only metalaw knows")
	}
	fail(fmt.Sprintf("it reads input.%s as a whole, or what is not there", name))
	return operand{}
}

var (
	identifier = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9]*$`)
	reserved   = []string{"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop",
		"package", "namespace", "return", "var", "void", "while"}
)

// follow follows keys. A value is defined where each of them is there.
func (s *scope) follow(v operand, keys ast.Ref) operand {
	for _, key := range keys {
		if literalValue, ok := v.literal.(ast.Object); ok && ast.IsConstant(key.Value) {
			if found := literalValue.Get(key); found != nil {
				next := constant(found.Value)
				next.defined = v.defined
				v = next
				continue
			}
			return operand{defined: no, cel: no, literal: ast.Boolean(false)}
		}
		k := s.operand(key)
		next := operand{}
		word, isText := k.literal.(ast.String)
		switch {
		case isText && identifier.MatchString(string(word)) && !slices.Contains(reserved, string(word)):
			next.cel = v.cel + "." + string(word)
			next.defined = and(v.defined, "has("+next.cel+")")
		case isText || k.literal == nil:
			next.cel = v.cel + "[" + k.cel + "]"
			next.defined = and(v.defined, k.defined, k.cel+" in "+v.cel)
		default:
			fail("it asks for an element by its number")
		}
		if v.path != nil && isText {
			next.path = append(slices.Clone(v.path), string(word))
			next.isList = slices.Contains(lists, strings.Join(next.path, "."))
		}
		v = next
	}
	return v
}
