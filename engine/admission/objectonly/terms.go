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

// operand is a value in CEL.
type operand struct {
	// defined are the conditions under which there is a value: all of them hold. None for always.
	defined []string
	// cel is bracketed where it is more than a name or a call, so that every operator can take it.
	cel   string
	shape *shape
	// literal is set for a constant.
	literal ast.Value
	// elements are those of a list that is written out.
	elements []operand
}

// never is what has no value.
func never() operand {
	return operand{defined: []string{no}, cel: no, shape: aTruth, literal: ast.Boolean(false)}
}

// known is a condition that holds or does not whatever the object is.
func known(holds bool) operand { return constant(ast.Boolean(holds)) }

// both are the conditions of two lists, each once.
func both(a, b []string) []string {
	all := slices.Clone(a)
	for _, one := range b {
		if one != yes && one != "" && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// operand translates a term.
func (s *scope) operand(term *ast.Term) operand {
	s.terms++
	if s.terms > mostTerms {
		fail(tooLong)
	}
	v := s.term(term)
	length := len(v.cel)
	for _, condition := range v.defined {
		length += len(condition)
	}
	if length > longest {
		fail(tooLong)
	}
	return v
}

func (s *scope) term(term *ast.Term) operand {
	switch v := term.Value.(type) {
	case ast.Var:
		if named, ok := s.names[v]; ok {
			return named
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
	v, parts := operand{shape: listOf(nil)}, []string{}
	array.Foreach(func(term *ast.Term) {
		one := s.operand(term)
		v.defined = both(v.defined, one.defined)
		v.shape = either(v.shape, listOf(one.shape))
		v.elements = append(v.elements, one)
		parts = append(parts, "dyn("+one.cel+")") // the API server wants the elements of a list to be of one type
	})
	if v.shape.vague() {
		fail("it puts values of several kinds into a list")
	}
	v.cel = "[" + strings.Join(parts, ", ") + "]"
	return v
}

func constant(v ast.Value) operand {
	c := operand{cel: literal(v), shape: shapeOf(v), literal: v}
	if array, ok := v.(*ast.Array); ok {
		array.Foreach(func(term *ast.Term) { c.elements = append(c.elements, constant(term.Value)) })
	}
	return c
}

// literal writes a constant. A set becomes a list.
func literal(v ast.Value) string {
	var parts []string
	part := func(term *ast.Term) { parts = append(parts, literal(term.Value)) }
	switch v := v.(type) {
	case ast.String:
		return Quoted(string(v))
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

// Quoted writes a string of CEL. JSON's escapes are CEL's, but for that of the slash, which is not made.
func Quoted(words string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(words); err != nil {
		panic(err) // a string can always be written
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// ref translates a reference: to the input, to a rule, or to a part of what has a name.
func (s *scope) ref(ref ast.Ref) operand {
	head, _ := ref[0].Value.(ast.Var)
	if named, ok := s.names[head]; ok {
		return s.follow(named, ref[1:])
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
		path, ok := one.Path.Value.(ast.Ref)
		if ok && one.Name() == head && (path.HasPrefix(ast.InputRootRef) || path.HasPrefix(ast.DefaultRootRef)) {
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
		return s.follow(operand{cel: "request.operation", shape: aText}, rest)
	case "object":
		return s.follow(operand{cel: "object", shape: schemas[s.kind]}, rest)
	case "oldObject": // null on CREATE, where Rego sees an empty object
		return s.follow(operand{cel: "(oldObject == null ? {} : oldObject)", shape: schemas[s.kind]}, rest)
	case "user":
		switch {
		case len(rest) == 1 && literalText(rest[0]) == "name":
			return operand{cel: `request.userInfo.?username.orValue("")`, shape: aText}
		case len(rest) == 1 && literalText(rest[0]) == "groups":
			return operand{cel: "request.userInfo.?groups.orValue([])", shape: listOf(aText)}
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
		k := s.operand(key)
		switch constants, ok := v.literal.(ast.Object); {
		case ok && k.literal != nil:
			found := constants.Get(ast.NewTerm(k.literal))
			if found == nil {
				return never()
			}
			v = constant(found.Value).given(v, k)
		case v.shape.kind == object:
			v = value(v, k, key)
		case v.shape.kind == set:
			v = member(v, k)
		case v.shape.kind == list:
			fail(fmt.Sprintf("it asks a list for its element %s", key))
		default:
			fail(fmt.Sprintf("it asks for %s of what may be no object", key))
		}
	}
	return v
}

// given is a value that there is where there are others.
func (v operand) given(others ...operand) operand {
	var conditions []string
	for _, other := range others {
		conditions = both(conditions, other.defined)
	}
	v.defined = both(conditions, v.defined)
	return v
}

// value is that of a key of an object.
func value(v, key operand, written *ast.Term) operand {
	next := operand{cel: v.cel + "[" + key.cel + "]"}
	there := key.cel + " in " + v.cel
	word, isText := key.literal.(ast.String)
	switch {
	case isText:
		if next.shape = v.shape.field(string(word)); next.shape == nil {
			fail(fmt.Sprintf("it asks for the key %s, which the schema has not", written))
		}
		if identifier.MatchString(string(word)) && !slices.Contains(reserved, string(word)) {
			next.cel = v.cel + "." + string(word)
			there = "has(" + next.cel + ")"
		}
	case key.shape.kind == text:
		if next.shape = v.shape.anyKey(v.literal != nil); next.shape == nil {
			return never()
		}
	default:
		fail(fmt.Sprintf("it asks for the key %s, which may be no string", written))
	}
	next.defined = []string{there}
	return next.given(v, key)
}

// field is the shape of the value of a key that is written out; nil where it cannot be there.
func (s *shape) field(key string) *shape {
	if s.of != nil {
		return s.of
	}
	return s.fields[key]
}

// anyKey is the shape of the value of a key that is not written out; nil where there is none.
func (s *shape) anyKey(isConstant bool) *shape {
	if s.open || len(s.fields) > 0 && !isConstant {
		fail("it asks an object for a field that is not written out")
	}
	all := s.values()
	if all.vague() {
		fail("it asks for one of several values that are not of one kind")
	}
	return all
}

// member is an element of a set, by itself.
func member(v, element operand) operand {
	contained := within(element, v)
	if holds, ok := contained.literal.(ast.Boolean); ok {
		if !bool(holds) {
			return never()
		}
		return element.given(v)
	}
	element.defined = both(element.defined, []string{contained.cel})
	return element.given(v)
}

// within says that a list or a set has an element.
func within(element, whole operand) operand {
	switch {
	case whole.shape.kind != list && whole.shape.kind != set:
		fail("it looks into what may be no list")
	case whole.shape.of == nil:
		return known(false)
	case !element.shape.alike() || !whole.shape.of.alike():
		fail("it looks for what CEL compares in another way")
	case !ofOneKind(element.shape, whole.shape.of):
		return known(false)
	}
	return operand{cel: "(" + element.cel + " in " + whole.cel + ")", shape: aTruth}
}
