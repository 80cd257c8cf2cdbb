// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/metalaw/metalaw/engine/diag"
)

// A value that holds another twice, which holds another twice, and so on, is written in a line for each time, and whoever goes
// through it, such as the compiler's check of types, takes twice the time for each. So the places at which a value may hold computed
// ones are multiplied along the way on which values are made of each other, before the compiler looks at it.

const (
	// maxShared is the most that a value may come to in such places, as a power of two.
	maxShared = 12.0
	// A comprehension and a set of rules repeat what is in them. What repeated asks counts each as if that were a thousand times, and
	// each level of the input as if it had sixteen parts; over maxRepeated it takes a repetition within another, or one of much of the input.
	repeats     = 10.0
	inputPart   = 4.0
	maxRepeated = 17.0
	// maxPasses is how often the rules are gone through until nothing changes; names may be used before they are defined.
	maxPasses = 64
	// maxVisited is how many terms are gone through at all; a function is gone through for each shape of what it is called with.
	maxVisited = 75_000
)

// sharing says what the values of all modules come to, by name: those of rules by their full names, those of functions by what they
// are called with, too, and those of variables by their frame.
type sharing struct {
	sizes map[string]levels
	// rules are the full names of rules, sorted, and definitions what is written of each.
	rules       []string
	definitions map[string][]definition
	// repeats is what a repetition counts for, and most what a value may come to, as powers of two.
	repeats, most float64
	frame
	// open are the rules that are being gone through, and closed those that this pass is done with.
	open, closed map[string]bool
	terms        int
	// widest is the first rule that comes to too much, and untold says that counting was given up there.
	widest *ast.Rule
	untold bool
	// changed says that this pass has learned something, and latest in which rule.
	changed bool
	latest  *ast.Rule
}

// checkSharing finds the first rule whose values come to too much by what is written in them.
func checkSharing(modules map[string]*ast.Module) diag.List {
	s := &sharing{sizes: map[string]levels{}, most: maxShared}
	s.run(modules)
	if s.widest == nil {
		return nil
	}
	at := s.widest.Loc()
	found := diag.Diagnostic{Severity: diag.Error, Code: CodeLimit, File: at.File, Line: at.Row, Column: at.Col,
		Rule:    s.widest.Head.Ref().GroundPrefix().String(),
		Message: fmt.Sprintf("values are put together of each other until one of them holds more than %d computed parts", 1<<int(maxShared)),
		Hint:    "let each value hold another once, and compare the values themselves"}
	if s.untold {
		found.Message = "values are put together of each other over so many rules and calls that their computed parts cannot be counted"
		found.Hint = "let fewer values hold each other, and write each after those that it holds"
	}
	return diag.List{found}
}

// repeated says that a value may hold another very often by way of repetitions, so that it may take one step longer than anybody waits
// to go through it.
func repeated(modules map[string]*ast.Module) bool {
	s := &sharing{sizes: map[string]levels{"input": {inputPart, inputPart, inputPart}}, repeats: repeats, most: maxRepeated}
	s.run(modules)
	return s.widest != nil
}

func (s *sharing) run(modules map[string]*ast.Module) {
	s.define(modules)
	s.changed = true
	for pass := 0; s.changed && s.widest == nil; pass++ {
		s.changed, s.open, s.closed = false, map[string]bool{}, map[string]bool{}
		for _, name := range s.rules { // functions first, so that one that comes to too much by itself is named, and not who calls it
			if s.isFunction(name) {
				s.rule(name)
			}
		}
		for _, name := range s.rules {
			s.rule(name)
		}
		if pass == maxPasses && s.changed {
			s.giveUp()
		}
	}
}

func (s *sharing) body(body ast.Body) {
	for _, expr := range body {
		s.expression(expr)
	}
}

func (s *sharing) expression(expr *ast.Expr) {
	for _, with := range expr.With {
		size := s.of(with.Value)
		if ref, ok := with.Target.Value.(ast.Ref); ok {
			for range ref[1:] {
				size = size.within(1)
			}
			s.note(s.global(ref), size)
		}
	}
	switch terms := expr.Terms.(type) {
	case *ast.Term:
		s.of(terms)
	case *ast.SomeDecl:
		for _, symbol := range terms.Symbols {
			s.of(symbol)
		}
		if call, ok := some(terms); ok {
			s.each(call[1:len(call)-1], call[len(call)-1])
		}
	case *ast.Every:
		s.each([]*ast.Term{terms.Key, terms.Value}, terms.Domain)
		s.body(terms.Body)
	case []*ast.Term:
		s.call(terms)
	}
}

// some is the call of `some k, v in collection`.
func some(d *ast.SomeDecl) (ast.Call, bool) {
	if len(d.Symbols) != 1 {
		return nil, false
	}
	call, ok := d.Symbols[0].Value.(ast.Call)
	return call, ok && len(call) > 2
}

// each gives names to the parts of a collection.
func (s *sharing) each(names []*ast.Term, collection *ast.Term) {
	part := s.of(collection).inner()
	for _, name := range names {
		if name != nil {
			s.bind(name, part)
		}
	}
}

// bind lets the variables of a pattern have a value, or the parts of it.
func (s *sharing) bind(pattern *ast.Term, size levels) {
	switch v := pattern.Value.(type) {
	case ast.Var:
		s.note(s.local(v), size)
	case *ast.Array:
		v.Foreach(func(t *ast.Term) { s.bind(t, size.inner()) })
	case ast.Object:
		v.Foreach(func(_, t *ast.Term) { s.bind(t, size.inner()) })
	}
}

// of is what a term comes to. Whatever the term binds on the way is noted.
func (s *sharing) of(t *ast.Term) levels {
	if s.terms > maxVisited {
		s.giveUp()
	}
	if s.widest != nil {
		return nil
	}
	s.terms++
	switch v := t.Value.(type) {
	case ast.Var:
		return s.variable(v)
	case ast.Ref:
		return s.ref(v)
	case ast.Call:
		return s.call(v)
	case *ast.Array, ast.Set, ast.Object:
		return s.literal(v)
	case *ast.ArrayComprehension:
		s.body(v.Body)
		return s.of(v.Term).under(s.repeats)
	case *ast.SetComprehension:
		s.body(v.Body)
		return s.of(v.Term).under(s.repeats)
	case *ast.ObjectComprehension:
		s.body(v.Body)
		return s.of(v.Key).or(s.of(v.Value)).under(1 + s.repeats)
	}
	return nil
}

func (s *sharing) literal(v ast.Value) levels {
	var parts []levels
	eachPart(v, func(t *ast.Term) {
		if computed(t) {
			parts = append(parts, s.of(t))
		}
	})
	return holding(parts)
}

// computed says that a part of a literal is worked out, or that something in it is.
func computed(t *ast.Term) bool {
	switch v := t.Value.(type) {
	case ast.Null, ast.Boolean, ast.Number, ast.String:
		return false
	case *ast.Array, ast.Set, ast.Object:
		found := false
		eachPart(v, func(t *ast.Term) { found = found || computed(t) })
		return found
	}
	return true
}

func eachPart(v ast.Value, do func(*ast.Term)) {
	switch v := v.(type) {
	case *ast.Array:
		v.Foreach(do)
	case ast.Set:
		v.Foreach(do)
	case ast.Object:
		v.Foreach(func(k, t *ast.Term) { do(k); do(t) })
	}
}

func (s *sharing) variable(v ast.Var) levels {
	size := s.sizes[s.local(v)]
	if ref, ok := s.aliases[string(v)]; ok {
		return size.or(s.ref(ref))
	}
	name := s.named(v)
	if name == "" {
		return size
	}
	s.rule(name)
	return size.or(s.sizes[name])
}

func (s *sharing) ref(ref ast.Ref) levels {
	head, isVar := ref[0].Value.(ast.Var)
	var size levels
	switch {
	case !isVar:
		size = s.of(ref[0])
	case ref.HasPrefix(ast.DefaultRootRef):
		return s.document(ref)
	case s.aliases[string(head)] != nil:
		return s.document(s.aliases[string(head)].Concat(ref[1:]))
	default:
		size = s.variable(head)
		if s.named(head) != "" {
			size = size.or(s.document(s.pkg.Extend(ref)))
		}
	}
	for _, t := range ref[1:] {
		if _, key := t.Value.(ast.Var); key {
			s.bind(t, size.inner())
		} else {
			s.of(t)
		}
		size = size.inner()
	}
	return size
}

// document is what a reference to a rule comes to, or to a part of what it makes; or to a package, which holds all of its rules.
func (s *sharing) document(ref ast.Ref) levels {
	for n := len(ref); n > 0; n-- {
		name := ref[:n].String()
		s.rule(name)
		size, ok := s.sizes[name]
		if !ok {
			continue
		}
		for _, t := range ref[n:] {
			if _, key := t.Value.(ast.Var); key {
				s.bind(t, size.inner())
			}
			size = size.inner()
		}
		return size
	}
	parts, size := 0, levels(nil)
	prefix := ref.ConstantPrefix().String()
	for i, _ := slices.BinarySearch(s.rules, prefix); i < len(s.rules) && strings.HasPrefix(s.rules[i], prefix); i++ {
		parts++
		s.rule(s.rules[i])
		size = size.or(s.sizes[s.rules[i]])
	}
	return size.within(parts)
}

// call is what a function returns, with its arguments noted where it is one of the bundle's own.
func (s *sharing) call(terms []*ast.Term) levels {
	name, arguments := terms[0].String(), terms[1:]
	if (name == ast.Equality.Name || name == ast.Assign.Name) && len(arguments) == 2 {
		left, right := s.of(arguments[0]), s.of(arguments[1])
		s.bind(arguments[0], right)
		s.bind(arguments[1], left)
		return nil
	}
	size, each := levels(nil), make([]levels, len(arguments))
	for i, argument := range arguments {
		each[i] = s.of(argument)
		size = size.or(each[i])
	}
	if known, ok := ast.BuiltinMap[name]; ok {
		if at := slices.IndexFunc(allowed, func(b builtin) bool { return b.name == name }); at < 0 || !allowed[at].passes() {
			size = nil
		}
		if len(arguments) > known.Decl.Arity() { // the last one is given the result
			s.bind(arguments[len(arguments)-1], size)
		}
		return size
	}
	ref, ok := terms[0].Value.(ast.Ref)
	if !ok {
		return nil
	}
	full := s.global(ref)
	if !s.isFunction(full) {
		return nil
	}
	arity := len(s.definitions[full][0].rule.Head.Args)
	size = s.result(full, each[:min(arity, len(each))]).or(s.sizes[full])
	if len(arguments) > arity { // the last one is given the result
		s.bind(arguments[len(arguments)-1], size)
	}
	return size
}

// passes says that the function returns its operands, or parts of them; what it makes of them beyond that is bounded when it is called.
func (b builtin) passes() bool {
	return b.growth == linear || b.growth == constant || b.growth == comparing || b.name == "minus"
}

// global is the full name of what a reference names: a rule, an import, or the input.
func (s *sharing) global(ref ast.Ref) string {
	head, _ := ref[0].Value.(ast.Var)
	switch {
	case ref.HasPrefix(ast.DefaultRootRef):
		return ref.ConstantPrefix().String()
	case ref.HasPrefix(ast.InputRootRef):
		return s.local(head)
	case s.aliases[string(head)] != nil:
		return s.aliases[string(head)].Concat(ref[1:]).ConstantPrefix().String()
	}
	return s.pkg.Extend(ref).ConstantPrefix().String()
}

// local is the name of a variable of the present frame; the input is the same everywhere.
func (s *sharing) local(v ast.Var) string {
	if v.Equal(ast.InputRootDocument.Value) {
		return "input"
	}
	return s.values + string(v)
}

// note adds to what is known of a name.
func (s *sharing) note(name string, size levels) {
	was, known := s.sizes[name]
	now := was.or(size).trimmed()
	if known && slices.Equal(was, now) {
		return
	}
	s.sizes[name] = now
	if known || len(now) > 0 {
		s.changed, s.latest = true, s.blamed
	}
	if now.total() > s.most && s.widest == nil {
		s.widest = s.blamed
	}
}
