// SPDX-License-Identifier: Apache-2.0

package objectonly

import (
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// operand is a value in CEL.
type operand struct {
	// defined is the condition under which there is a value; empty for always.
	defined string
	cel     string
	// literal is set for a constant.
	literal ast.Value
	// isList: it is certainly a list. isBool: it is certainly true or false.
	isList, isBool bool
	// path are the keys that lead to it from the input; nil where it is no part of it.
	path []string
}

// scope is what has a name within one rule.
type scope struct {
	*translator
	*source
	names map[ast.Var]operand
	// proven are conditions under which something is defined, and which hold from here on.
	proven []string
	loops  bool
}

func (t *translator) newScope(s *source) *scope {
	return &scope{translator: t, source: s, names: map[ast.Var]operand{}}
}

func (s *scope) with(name ast.Var, value operand) *scope {
	inner := &scope{s.translator, s.source, maps.Clone(s.names), slices.Clone(s.proven), s.loops}
	inner.names[name] = value
	return inner
}

// body is the condition under which a body holds, and what is asked for at its end as well.
func (s *scope) body(rest ast.Body, end func(*scope) string) string {
	if len(rest) == 0 {
		return end(s)
	}
	one, rest := rest[0], rest[1:]
	if len(one.With) > 0 {
		fail("it uses with")
	}
	if some, ok := one.Terms.(*ast.SomeDecl); ok {
		return s.loop(some, rest, end)
	}
	if name, value := s.assigned(one); value != nil {
		v := s.operand(value)
		defined := v.defined
		v.defined = "" // behind here it is
		return and(defined, s.with(name, v).body(rest, end))
	}
	condition := s.condition(one)
	if one.Negated {
		condition = not(condition)
	}
	if condition == no {
		return no
	}
	return and(condition, s.body(rest, end))
}

// assigned is the new name that an expression gives, and the term that it gives it to; nil where it gives none.
func (s *scope) assigned(e *ast.Expr) (ast.Var, *ast.Term) {
	if !e.IsAssignment() && !e.IsEquality() || e.Negated {
		return "", nil
	}
	name, ok := e.Operand(0).Value.(ast.Var)
	if _, known := s.names[name]; !ok || known || e.IsEquality() && s.isRule(name) {
		return "", nil
	}
	return name, e.Operand(1)
}

func (s *scope) isRule(name ast.Var) bool {
	return len(s.rules[s.module.Package.Path.String()+"."+string(name)]) > 0
}

// loop is some x in a list.
func (s *scope) loop(some *ast.SomeDecl, rest ast.Body, end func(*scope) string) string {
	if len(some.Symbols) != 1 {
		fail("it declares variables by some")
	}
	call, ok := some.Symbols[0].Value.(ast.Call)
	if !ok || call[0].String() != ast.Member.Name {
		fail("it goes over keys and values")
	}
	name, ok := call[1].Value.(ast.Var)
	list := s.operand(call[2])
	if !ok || !list.isList {
		fail(fmt.Sprintf("it goes over %s, which may be no list", call[2]))
	}
	s.translator.names++
	variable := fmt.Sprintf("x%d", s.translator.names)
	inner := s.with(name, operand{cel: variable})
	inner.loops = true
	condition := inner.body(rest, end)
	if condition == no {
		return no
	}
	return and(list.defined, list.cel+".exists("+variable+", "+condition+")")
}

// condition is that of one expression, without its not.
func (s *scope) condition(e *ast.Expr) string {
	switch terms := e.Terms.(type) {
	case *ast.Term:
		return s.truth(terms)
	case []*ast.Term:
		if e.Negated { // what becomes of an absent argument then depends on how OPA takes the call apart
			for _, arg := range terms[1:] {
				if defined := s.operand(arg).defined; defined != yes && defined != "" && !slices.Contains(s.proven, defined) {
					fail("it negates a call of what may be absent; give that a name first, or read it by object.get")
				}
			}
		}
		for _, arg := range terms[1:] {
			if !e.Negated {
				s.proven = append(s.proven, s.operand(arg).defined)
			}
		}
		return holds(s.call(terms))
	case *ast.Every:
		fail("it uses every")
	}
	fail("of an expression of another kind")
	return no
}

// truth is the condition that a term has a value that is not false.
func (s *scope) truth(term *ast.Term) string { return holds(s.operand(term)) }

func holds(v operand) string {
	if b, ok := v.literal.(ast.Boolean); ok {
		if !bool(b) {
			return no
		}
		return and(v.defined, yes)
	}
	if v.literal != nil {
		return and(v.defined, yes)
	}
	if v.isBool {
		return and(v.defined, v.cel)
	}
	return and(v.defined, v.cel+" != false")
}

// value is what the rules of one name come to: with arguments, that of a function.
func (t *translator) value(path string, args []operand) operand {
	rules := t.rules[path]
	t.depth++
	if t.depth > 24 {
		fail("its helper rules call each other too deep")
	}
	defer func() { t.depth-- }()
	var fallback *operand
	var branches []operand
	for _, one := range rules {
		if one.rule.Head.RuleKind() == ast.MultiValue || len(one.rule.Head.Ref()) > 1 {
			fail("it reads the set or object " + one.rule.Head.Ref().String())
		}
		if one.rule.Default {
			v := t.newScope(one).operand(one.rule.Head.Value)
			fallback = &v
			continue
		}
		for rule := one.rule; rule != nil; rule = rule.Else {
			branches = append(branches, t.branch(&source{rule, one.module}, args))
		}
	}
	return chosen(branches, fallback)
}

// branch is one body with its value.
func (t *translator) branch(s *source, args []operand) operand {
	in := t.newScope(s)
	matches := yes
	for i, parameter := range s.rule.Head.Args {
		if name, ok := parameter.Value.(ast.Var); ok {
			in = in.with(name, args[i])
			continue
		}
		matches = and(matches, equal(args[i], in.operand(parameter)))
	}
	var value operand
	condition := in.body(s.rule.Body, func(end *scope) string {
		value = end.operand(s.rule.Head.Value)
		if end.loops && value.literal == nil {
			fail("a helper rule has its value from a loop")
		}
		return and(value.defined, yes)
	})
	value.defined = and(matches, condition)
	if value.defined == no {
		value = operand{defined: no, cel: no, literal: ast.Boolean(false)}
	}
	return value
}

// chosen is the value of the first branch that is defined. Where two are with different values Rego fails, and metalaw refuses.
func chosen(branches []operand, fallback *operand) operand {
	var possible []operand
	for _, b := range branches {
		if b.defined != no {
			possible = append(possible, b)
		}
	}
	if fallback != nil {
		possible = append(possible, *fallback)
	}
	if len(possible) == 0 {
		return operand{defined: no, cel: no, literal: ast.Boolean(false)}
	}
	last := possible[len(possible)-1]
	if len(possible) == 1 {
		return last
	}
	same, lists := true, true
	var conditions []string
	for _, b := range possible {
		same = same && b.literal != nil && last.literal != nil && b.literal.Compare(last.literal) == 0
		lists = lists && b.isList
		conditions = append(conditions, b.defined)
	}
	if same {
		return operand{defined: or(conditions...), cel: last.cel, literal: last.literal, isList: lists}
	}
	if condition, ok := truths(possible); ok {
		return operand{defined: or(conditions...), cel: condition, isBool: true}
	}
	cel := last.cel
	for i := len(possible) - 2; i >= 0; i-- {
		cel = "(" + and(possible[i].defined, yes) + " ? " + possible[i].cel + " : " + cel + ")"
	}
	return operand{defined: or(conditions...), cel: cel, isList: lists}
}

// truths is the condition under which branches are true, where they are true and false by themselves, those that are true first.
func truths(branches []operand) (condition string, ok bool) {
	var conditions []string
	ended := false
	for _, b := range branches {
		truth, isBool := b.literal.(ast.Boolean)
		if !isBool || bool(truth) && ended {
			return "", false
		}
		if ended = !bool(truth); !ended {
			conditions = append(conditions, b.defined)
		}
	}
	return or(conditions...), true
}

// equal compares two values.
func equal(a, b operand) string {
	if a.literal != nil && b.literal != nil {
		if a.literal.Compare(b.literal) == 0 {
			return and(a.defined, b.defined)
		}
		return no
	}
	return and(a.defined, b.defined, a.cel+" == "+b.cel)
}
