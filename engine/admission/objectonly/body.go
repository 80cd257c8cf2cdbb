// SPDX-License-Identifier: Apache-2.0

package objectonly

import (
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

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
	if name, term := s.assigned(one); term != nil {
		v := s.operand(term)
		defined := s.prove(v.defined)
		if defined == no {
			return no
		}
		v.defined = nil // behind here it is
		return short(and(defined, s.with(name, v).body(rest, end)))
	}
	condition := s.condition(one)
	if condition == no {
		return no
	}
	return short(and(condition, s.body(rest, end)))
}

// short ends what grows too long before it grows further.
func short(condition string) string {
	if len(condition) > longest {
		fail(tooLong)
	}
	return condition
}

// prove is the condition that all conditions hold, which they do from here on; it leaves out those that do anyway.
func (s *scope) prove(conditions []string) string {
	var unproven []string
	for _, one := range conditions {
		if !slices.Contains(s.proven, one) {
			unproven = append(unproven, one)
		}
	}
	s.proven = append(s.proven, unproven...)
	return and(unproven...)
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
	whole := s.operand(call[2])
	if !ok || whole.shape.kind != list && whole.shape.kind != set {
		fail(fmt.Sprintf("it goes over %s, which may be no list", call[2]))
	}
	defined := s.prove(whole.defined)
	if whole.shape.of == nil || defined == no {
		return no
	}
	s.loopVariables++
	variable := fmt.Sprintf("x%d", s.loopVariables)
	inner := s.with(name, operand{cel: variable, shape: whole.shape.of})
	inner.loops = true
	condition := inner.body(rest, end)
	if condition == no {
		return no
	}
	return short(and(defined, whole.cel+".exists("+variable+", "+condition+")"))
}

// condition is that of one expression.
func (s *scope) condition(e *ast.Expr) string {
	switch terms := e.Terms.(type) {
	case *ast.Term:
		if e.Negated {
			return s.negated(terms)
		}
		return s.holds(s.operand(terms))
	case []*ast.Term:
		if e.Negated {
			return s.negated(ast.CallTerm(terms...))
		}
		return s.holds(s.call(terms))
	case *ast.Every:
		fail("it uses every")
	}
	fail("of an expression of another kind")
	return no
}

// negated is the condition that a term does not hold. Rego takes the keys of a reference and the arguments of a call out in front
// of the not, so that the whole body does not hold where one of them is absent.
func (s *scope) negated(term *ast.Term) string {
	var v operand
	switch t := term.Value.(type) {
	case ast.Call:
		args := s.arguments(t)
		s.mustBeThere(args...)
		v = s.apply(t, args)
	case ast.Ref:
		for _, key := range t[1:] {
			s.mustBeThere(s.operand(key))
		}
		v = s.operand(term)
	case ast.Var:
		v = s.operand(term)
	default: // OPA lets a body that is not true and nothing else hold
		fail("it negates a constant or a list")
	}
	inner := *s // what holds within the not does so there alone
	inner.proven = slices.Clone(s.proven)
	return not(inner.holds(v))
}

// mustBeThere fails where one of the values may be absent at this place.
func (s *scope) mustBeThere(values ...operand) {
	for _, v := range values {
		for _, condition := range v.defined {
			if !slices.Contains(s.proven, condition) {
				fail("it negates a call or a key of what may be absent; give that a name first, or read it by object.get")
			}
		}
	}
}

// holds is the condition that a value is there and is not false.
func (s *scope) holds(v operand) string {
	defined := s.prove(v.defined)
	if b, ok := v.literal.(ast.Boolean); ok && !bool(b) {
		return no
	}
	switch {
	case v.literal != nil:
		return defined
	case v.shape.kind == anything:
		fail("of what may be of several kinds")
	case v.shape.kind == truth:
		return and(defined, v.cel)
	}
	return defined
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
		if len(one.rule.Head.Args) != len(args) {
			fail("it reads the function " + one.rule.Head.Ref().String())
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
		matches = and(matches, in.holds(compared([]operand{args[i], in.operand(parameter)}, "==")))
	}
	var value operand
	condition := in.body(s.rule.Body, func(end *scope) string {
		value = end.operand(s.rule.Head.Value)
		if end.loops && value.literal == nil {
			fail("a helper rule has its value from a loop")
		}
		return end.prove(value.defined)
	})
	condition = and(matches, condition)
	if condition == no {
		return never()
	}
	value.defined = both(nil, []string{condition})
	return value
}

// chosen is the value of the first branch that is defined. Where two are with different values Rego fails, and metalaw refuses.
func chosen(branches []operand, fallback *operand) operand {
	var possible []operand
	for _, b := range branches {
		if !slices.Contains(b.defined, no) {
			possible = append(possible, b)
		}
	}
	if fallback != nil {
		possible = append(possible, *fallback)
	}
	if len(possible) == 0 {
		return never()
	}
	last := possible[len(possible)-1]
	if len(possible) == 1 {
		return last
	}
	same, all := true, last.shape
	var conditions []string
	for _, b := range possible {
		same = same && b.literal != nil && last.literal != nil && b.literal.Compare(last.literal) == 0
		all = either(all, b.shape)
		conditions = append(conditions, and(b.defined...))
	}
	defined := both(nil, []string{or(conditions...)})
	if same {
		last.defined = defined
		return last
	}
	if condition, ok := truths(possible); ok {
		return operand{defined: defined, cel: condition, shape: aTruth}
	}
	if all.vague() {
		fail("a helper rule has values of several kinds")
	}
	cel := last.cel
	for i := len(possible) - 2; i >= 0; i-- {
		cel = "(" + and(possible[i].defined...) + " ? " + possible[i].cel + " : " + cel + ")"
	}
	return operand{defined: defined, cel: cel, shape: all}
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
			conditions = append(conditions, and(b.defined...))
		}
	}
	return or(conditions...), true
}
