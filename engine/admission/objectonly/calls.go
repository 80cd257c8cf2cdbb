// SPDX-License-Identifier: Apache-2.0

package objectonly

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Functions lists the built-in functions and operators of Rego that are translated, as they are written there, sorted.
func Functions() []string {
	var names []string
	for name := range functions {
		names = append(names, cmp.Or(ast.BuiltinMap[name].Infix, name))
	}
	slices.Sort(names)
	return names
}

// functions write a call in CEL, given its arguments. Those that mean something else in CEL, such as lower, are not there.
var functions = map[string]func(a []operand) operand{
	"equal": func(a []operand) operand { return compared(a, "==") }, "eq": func(a []operand) operand { return compared(a, "==") },
	"neq": func(a []operand) operand { return compared(a, "!=") },
	"lt":  func(a []operand) operand { return ordered(a, "<") }, "lte": func(a []operand) operand { return ordered(a, "<=") },
	"gt": func(a []operand) operand { return ordered(a, ">") }, "gte": func(a []operand) operand { return ordered(a, ">=") },
	"contains":          func(a []operand) operand { return method(a, "contains", aTruth) },
	"startswith":        func(a []operand) operand { return method(a, "startsWith", aTruth) },
	"endswith":          func(a []operand) operand { return method(a, "endsWith", aTruth) },
	"trim_space":        func(a []operand) operand { return method(a, "trim", aText) },
	"trim_suffix":       func(a []operand) operand { return trimmed(a, false) },
	"trim_prefix":       func(a []operand) operand { return trimmed(a, true) },
	"count":             count,
	"split":             func(a []operand) operand { return method([]operand{a[0], writtenOut(a[1])}, "split", listOf(aText)) },
	"concat":            concat,
	"regex.match":       regexMatch,
	"internal.member_2": func(a []operand) operand { return within(a[0], a[1]) },
	"substring":         substring,
	"sprintf":           sprintf,
	"object.get":        objectGet,
}

// call translates a call, of a built-in function or of one of the bundle.
func (s *scope) call(terms []*ast.Term) operand {
	args := s.arguments(terms)
	return s.apply(terms, args).given(args...)
}

func (s *scope) arguments(terms []*ast.Term) []operand {
	args := make([]operand, len(terms)-1)
	for i, term := range terms[1:] {
		args[i] = s.operand(term)
	}
	return args
}

// apply is what a call comes to where its arguments are there.
func (s *scope) apply(terms []*ast.Term, args []operand) operand {
	there := slices.Clone(args)
	for i := range there {
		if slices.Contains(there[i].defined, no) {
			return never()
		}
		there[i].defined = nil
	}
	ref, _ := terms[0].Value.(ast.Ref)
	head, _ := ref[0].Value.(ast.Var)
	write := functions[ref.String()]
	if write == nil || s.isRule(head) {
		return s.callRule(ref, there)
	}
	if ast.BuiltinMap[ref.String()].Decl.Arity() != len(args) {
		fail(fmt.Sprintf("it calls %s with its result as an argument", ref))
	}
	return write(there)
}

func (s *scope) callRule(ref ast.Ref, args []operand) operand {
	if full := s.imported(ref); full != nil {
		ref = full
	}
	path := ref.String()
	if !ref.HasPrefix(ast.DefaultRootRef) {
		path = s.module.Package.Path.String() + "." + path
	}
	if len(s.rules[path]) == 0 || len(s.rules[path][0].rule.Head.Args) != len(args) {
		fail("it calls " + ref.String())
	}
	return s.value(path, args)
}

func compared(a []operand, operator string) operand {
	if a[0].literal != nil && a[1].literal != nil {
		return known((a[0].literal.Compare(a[1].literal) == 0) == (operator == "=="))
	}
	if !a[0].shape.alike() || !a[1].shape.alike() {
		fail("it compares a set, a whole object or values of several kinds")
	}
	if !ofOneKind(a[0].shape, a[1].shape) {
		return known(operator == "!=")
	}
	return operand{cel: "(" + a[0].cel + " " + operator + " " + a[1].cel + ")", shape: aTruth}
}

// ordered compares two strings or two numbers: CEL knows no order of other values.
func ordered(a []operand, operator string) operand {
	if a[0].literal != nil && a[1].literal != nil {
		order := a[0].literal.Compare(a[1].literal)
		return known(order < 0 && operator[0] == '<' || order > 0 && operator[0] == '>' || order == 0 && len(operator) == 2)
	}
	if kind := a[0].shape.kind; kind != a[1].shape.kind || kind != text && kind != number {
		fail("it puts other values than two strings or two numbers in order")
	}
	return operand{cel: "(" + a[0].cel + " " + operator + " " + a[1].cel + ")", shape: aTruth}
}

// method is a function of a string and, mostly, another one.
func method(a []operand, name string, result *shape) operand {
	var rest []string
	for _, one := range a[1:] {
		rest = append(rest, aString(one).cel)
	}
	return operand{cel: aString(a[0]).cel + "." + name + "(" + strings.Join(rest, ", ") + ")", shape: result}
}

func aString(v operand) operand {
	if v.shape.kind != text {
		fail("a function takes a string that may be none")
	}
	return v
}

// writtenOut is a string that is written out.
func writtenOut(v operand) operand {
	if _, ok := v.literal.(ast.String); !ok {
		fail("a function takes a string that is not written out")
	}
	return v
}

func count(a []operand) operand {
	switch whole := a[0].shape; {
	case whole.kind != text && whole.kind != list && whole.kind != set && whole.kind != object, whole.open:
		fail("it counts what CEL counts in another way")
	}
	return operand{cel: "size(" + a[0].cel + ")", shape: aNumber}
}

func concat(a []operand) operand {
	whole := a[1].shape
	if whole.kind != list && whole.kind != set || whole.of != nil && whole.of.kind != text {
		fail("it joins what may be no list of strings")
	}
	return operand{cel: a[1].cel + ".join(" + writtenOut(a[0]).cel + ")", shape: aText}
}

func regexMatch(a []operand) operand {
	if _, err := regexp.Compile(literalOf(writtenOut(a[0]))); err != nil {
		fail("its pattern is none")
	}
	return operand{cel: aString(a[1]).cel + ".matches(" + a[0].cel + ")", shape: aTruth}
}

func literalOf(v operand) string {
	words, _ := v.literal.(ast.String)
	return string(words)
}

func trimmed(a []operand, before bool) operand {
	part, whole := literalOf(writtenOut(a[1])), aString(a[0]).cel
	if a[0].literal != nil {
		if before {
			return constant(ast.String(strings.TrimPrefix(literalOf(a[0]), part)))
		}
		return constant(ast.String(strings.TrimSuffix(literalOf(a[0]), part)))
	}
	n := utf8.RuneCountInString(part)
	if before {
		return operand{cel: fmt.Sprintf("(%s.startsWith(%s) ? %s.substring(%d) : %s)", whole, a[1].cel, whole, n, whole), shape: aText}
	}
	return operand{cel: fmt.Sprintf("(%s.endsWith(%s) ? %s.substring(0, size(%s) - %d) : %s)", whole, a[1].cel, whole, whole, n, whole), shape: aText}
}

// substring is translated from the beginning alone.
func substring(a []operand) operand {
	from, _ := a[1].literal.(ast.Number)
	length, _ := a[2].literal.(ast.Number)
	most, ok := length.Int()
	if from != "0" || !ok || most < 0 {
		fail("it takes a part of a string from its middle")
	}
	whole := aString(a[0]).cel
	return operand{cel: fmt.Sprintf("(size(%s) > %d ? %s.substring(0, %d) : %s)", whole, most, whole, most, whole), shape: aText}
}

// sprintf is translated where it puts strings into a text by %s and %v. The list of its values is written out.
func sprintf(a []operand) operand {
	format, values := literalOf(writtenOut(a[0])), a[1].elements
	var parts []string
	var words []byte
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			words = append(words, format[i])
			continue
		}
		i++
		switch {
		case i < len(format) && format[i] == '%':
			words = append(words, '%')
		case i == len(format) || format[i] != 's' && format[i] != 'v' || len(values) == 0:
			fail("a text is made by more than %s and %v of a list that is written out")
		case values[0].shape.kind != text:
			fail("a text is made of what may be no string")
		default:
			parts = append(parts, Quoted(string(words)), values[0].cel)
			words, values = nil, values[1:]
		}
	}
	if len(values) > 0 || a[1].shape.kind != list || len(a[1].elements) == 0 && a[1].literal == nil {
		fail("a text has more values than places")
	}
	return operand{cel: "(" + strings.Join(append(parts, Quoted(string(words))), " + ") + ")", shape: aText}
}

// objectGet reads a key, or the keys of a path, where they are there.
func objectGet(a []operand) operand {
	path, isPath := a[1].literal.(*ast.Array)
	if isPath && path.Len() == 0 {
		fail("it asks for a path without keys")
	}
	keys := []operand{a[1]}
	if isPath {
		keys = a[1].elements
	}
	v, there := operand{cel: a[0].cel}, a[0].shape
	for _, key := range keys {
		if there == nil || there.kind != object {
			fail("it asks for a key of what may be no object")
		}
		switch word, isText := key.literal.(ast.String); {
		case isText && there.of == nil && a[0].literal == nil && there.fields[string(word)] == nil:
			fail("it asks for the key " + strconv.Quote(string(word)) + ", which the schema has not")
		case isText:
			there = there.field(string(word))
		case key.shape.kind == text:
			there = there.anyKey(a[0].literal != nil)
		default:
			fail("it asks for a key that may be no string")
		}
		v.cel += "[?" + key.cel + "]"
	}
	if v.shape = either(there, a[2].shape); v.shape.vague() {
		fail("object.get has a value and a default of several kinds")
	}
	v.cel += ".orValue(" + a[2].cel + ")"
	return v
}
