// SPDX-License-Identifier: Apache-2.0

package regonative

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// expression translates one expression of a body.
func (s *scope) expression(expr *ast.Expr, into *body) {
	s.cost++
	if s.cost > mostExpressions {
		s.fail(expr.Location, "functions call each other so often that an evaluation may take too long",
			"give what is called repeatedly a rule of its own")
	}
	if len(expr.With) > 0 {
		s.fail(expr.Location, "of with", "write a function, and call it with what is to be different")
	}
	if !expr.Negated {
		s.plain(expr, into)
		return
	}
	var inner body
	s.plain(expr, &inner)
	if inner.loops {
		s.fail(expr.Location, "of a loop within not", "write a rule with the loop, and negate the rule")
	}
	into.steps = append(into.steps, step{holds: func(f *Frame) bool { return !inner.holds(f) }})
}

func (s *scope) plain(expr *ast.Expr, into *body) {
	switch terms := expr.Terms.(type) {
	case *ast.Term:
		if b, ok := terms.Value.(ast.Boolean); ok && bool(b) {
			return
		}
		value := s.soughtIn(terms, into)
		if value == nil {
			return
		}
		into.require(value)
	case []*ast.Term:
		s.call(expr, terms, into)
	case *ast.Every:
		s.fail(expr.Location, "of every", "write a helper rule with some x in a list and the opposite condition, and negate the helper")
	default:
		s.fail(expr.Location, "of an expression of another kind", "write a comparison or a call")
	}
}

// require adds a value that must be there and not be false.
func (b *body) require(value eval) {
	b.steps = append(b.steps, step{holds: func(f *Frame) bool {
		v, ok := value(f)
		return ok && !v.IsFalse()
	}})
}

// soughtIn is the reader of a term that stands for itself. It is nil where the term is a loop: the reference has a value for
// each turn, and that value must not be false.
func (s *scope) soughtIn(term *ast.Term, into *body) eval {
	if ref, ok := term.Value.(ast.Ref); ok && s.hasNew(ref) {
		value := s.loop(ref, term.Location, into)
		into.require(value)
		return nil
	}
	return s.value(term)
}

// hasNew says whether a reference binds a variable.
func (s *scope) hasNew(ref ast.Ref) bool {
	for _, key := range ref[1:] {
		if v, ok := key.Value.(ast.Var); ok && !s.isBound(v) {
			return true
		}
	}
	return false
}

// loop goes over what a reference with new variables leads to. It returns the reader of the value in each turn.
func (s *scope) loop(ref ast.Ref, loc *ast.Location, into *body) eval {
	at := 1
	for ; at < len(ref); at++ {
		if v, ok := ref[at].Value.(ast.Var); ok && !s.isBound(v) {
			break
		}
	}
	head, rest := s.head(ref[:at], loc)
	list := s.whole(s.follow(head, rest, loc), loc).use(s.Translator)
	key, element := s.local(), s.local()
	into.loops = true
	into.steps = append(into.steps, step{each: func(f *Frame, solution func()) {
		v, ok := list(f)
		if !ok {
			return
		}
		v.each(func(k, e Value) {
			f.locals[key], f.locals[element] = k, e
			solution()
		})
	}})
	s.bound[ref[at].Value.(ast.Var)] = operand{eval: func(f *Frame) (Value, bool) { return f.locals[key], true }}
	value := operand{eval: func(f *Frame) (Value, bool) { return f.locals[element], true }}
	if s.hasNew(ref[at:]) {
		s.fail(loc, "of a reference with two new variables", "write one loop after the other with some x in")
	}
	return s.lookUp(value.eval, ref[at+1:]).eval
}

// call translates a call of a built-in function or of a rule with arguments.
func (s *scope) call(expr *ast.Expr, terms []*ast.Term, into *body) {
	ref, _ := terms[0].Value.(ast.Ref)
	name, args := ref.String(), terms[1:]
	if name == ast.Equality.Name {
		s.equality(expr, args[0], args[1], into)
		return
	}
	if ref.HasPrefix(ast.DefaultRootRef) {
		s.callRule(expr, ref, args, into)
		return
	}
	builtin := ast.BuiltinMap[name]
	if builtin == nil || builtin.Relation {
		s.fail(expr.Location, "of "+name, "compare values instead")
	}
	arity := builtin.Decl.Arity()
	result := s.builtin(name, args[:arity], expr.Location)
	s.output(expr, result, args[arity:], into)
}

// output uses the value of a call: it must not be false, or is what a variable is bound to.
func (s *scope) output(expr *ast.Expr, result eval, out []*ast.Term, into *body) {
	if len(out) == 0 {
		into.require(result)
		return
	}
	if expr.Negated {
		s.fail(expr.Location, "of a value within not", "give the value a name first")
	}
	if v, ok := out[0].Value.(ast.Var); ok && !s.isBound(v) {
		s.bind(v, result, into)
		return
	}
	s.unify(operand{eval: result}, s.operand(out[0]), into)
}

func (s *scope) callRule(expr *ast.Expr, ref ast.Ref, args []*ast.Term, into *body) {
	rules := s.compiler.GetRulesExact(ref)
	if len(rules) == 0 {
		s.fail(expr.Location, "of "+ref.String(), "call a function of this bundle")
	}
	arity := len(rules[0].Head.Args)
	out := args[min(arity, len(args)):]
	if len(out) > 0 {
		if v, ok := out[0].Value.(ast.Var); !ok || s.isBound(v) {
			s.fail(expr.Location, "the result of a function is compared within the call", "give the result a name by :=, and compare that")
		}
	}
	values := make([]eval, arity)
	for i, arg := range args[:arity] {
		values[i] = s.value(arg)
	}
	fn := s.functionOf(ref, rules)
	s.output(expr, func(f *Frame) (Value, bool) {
		for i, value := range values {
			v, ok := value(f)
			if !ok {
				return Value{}, false
			}
			f.locals[fn.first+i] = v
		}
		return fn.eval(f)
	}, out, into)
}

func (s *scope) isBound(v ast.Var) bool {
	_, bound := s.bound[v]
	return bound
}

// equality translates a = b, which binds a variable that is new, or compares.
func (s *scope) equality(expr *ast.Expr, a, b *ast.Term, into *body) {
	for range 2 {
		if v, ok := a.Value.(ast.Var); ok && !s.isBound(v) {
			if expr.Negated {
				s.fail(expr.Location, "of a value within not", "give the value a name first")
			}
			s.assign(v, b, into)
			return
		}
		a, b = b, a
	}
	s.unify(s.sought(a, into), s.sought(b, into), into)
}

// sought is the operand of a term that may be a loop.
func (s *scope) sought(term *ast.Term, into *body) operand {
	if ref, ok := term.Value.(ast.Ref); ok && s.hasNew(ref) {
		return operand{eval: s.loop(ref, term.Location, into)}
	}
	return s.operand(term)
}

// assign binds a new variable. What is constant, or certainly there, is looked up where it is used.
func (s *scope) assign(v ast.Var, to *ast.Term, into *body) {
	o := s.sought(to, into)
	if o.literal != nil || (o.isInput && (o.field == nil || o.field.Always)) {
		s.bound[v] = o
		return
	}
	s.bind(v, s.whole(o, to.Location).use(s.Translator), into)
}

// bind evaluates a value once and keeps it.
func (s *scope) bind(v ast.Var, value eval, into *body) {
	slot := s.local()
	s.bound[v] = operand{eval: func(f *Frame) (Value, bool) { return f.locals[slot], true }}
	into.steps = append(into.steps, step{holds: func(f *Frame) (ok bool) {
		f.locals[slot], ok = value(f)
		return ok
	}})
}

// unify compares two values that are bound.
func (s *scope) unify(a, b operand, into *body) {
	x, y := s.whole(a, s.rule.Loc()).use(s.Translator), s.whole(b, s.rule.Loc()).use(s.Translator)
	into.steps = append(into.steps, step{holds: func(f *Frame) bool {
		p, ok := x(f)
		if !ok {
			return false
		}
		q, ok := y(f)
		return ok && equal(p, q)
	}})
}
