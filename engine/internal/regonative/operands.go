// SPDX-License-Identifier: Apache-2.0

package regonative

import (
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
)

// operand is a term of which the value is known or can be computed.
type operand struct {
	eval eval
	// literal is set for a constant, and keys for a part of the input of which nothing was read yet.
	literal *Value
	keys    []string
	isInput bool
	field   *Field
}

func constant(v Value) operand {
	return operand{literal: &v, eval: func(*Frame) (Value, bool) { return v, true }}
}

// use makes a reader of the operand, which reads what it needs of the input.
func (o operand) use(t *Translator) eval {
	if !o.isInput {
		return o.eval
	}
	t.uses.field(o.field)
	get := o.field.Get
	return func(f *Frame) (Value, bool) { return get(f.In) }
}

// operand translates a term. Variables in it must be bound.
func (s *scope) operand(term *ast.Term) operand {
	switch v := term.Value.(type) {
	case ast.Null, ast.Boolean, ast.Number, ast.String:
		return constant(Of(v))
	case ast.Var:
		if o, ok := s.bound[v]; ok {
			return o
		}
		s.fail(term.Location, fmt.Sprintf("a variable (%s) takes many values where one is asked for", v), "compare it with one value first")
	case ast.Ref:
		return s.ref(v, term.Location)
	case *ast.Array, ast.Object, ast.Set:
		if ast.IsConstant(v) {
			return constant(Value{kind: isOther, more: v})
		}
		return s.composite(term)
	}
	s.fail(term.Location, "of "+what(term.Value), "write it with conditions on input.candidate, with helper rules, or with some x in a list")
	return operand{}
}

func what(v ast.Value) string {
	switch v.(type) {
	case *ast.ArrayComprehension, *ast.ObjectComprehension, *ast.SetComprehension:
		return "a comprehension"
	default:
		return "an expression of kind " + ast.ValueName(v)
	}
}

// composite makes an array, an object or a set of values that are computed.
func (s *scope) composite(term *ast.Term) operand {
	var parts []eval
	part := func(term *ast.Term) { parts = append(parts, s.value(term)) }
	var build func([]*ast.Term) *ast.Term
	switch v := term.Value.(type) {
	case *ast.Array:
		v.Foreach(part)
		build = func(terms []*ast.Term) *ast.Term { return ast.ArrayTerm(terms...) }
	case ast.Set:
		v.Foreach(part)
		build = func(terms []*ast.Term) *ast.Term { return ast.SetTerm(terms...) }
	case ast.Object:
		v.Foreach(func(key, value *ast.Term) { part(key); part(value) })
		build = func(terms []*ast.Term) *ast.Term {
			pairs := make([][2]*ast.Term, len(terms)/2)
			for i := range pairs {
				pairs[i] = [2]*ast.Term{terms[2*i], terms[2*i+1]}
			}
			return ast.ObjectTerm(pairs...)
		}
	}
	return operand{eval: func(f *Frame) (Value, bool) {
		terms := make([]*ast.Term, len(parts))
		for i, part := range parts {
			v, ok := part(f)
			if !ok {
				return Value{}, false
			}
			terms[i] = v.Term()
		}
		return Value{kind: isOther, more: build(terms).Value}, true
	}}
}

// ref translates a reference of which every key is bound.
func (s *scope) ref(ref ast.Ref, loc *ast.Location) operand {
	head, rest := s.head(ref, loc)
	return s.follow(head, rest, loc)
}

// head is what the beginning of a reference leads to, and the keys that remain.
func (s *scope) head(ref ast.Ref, loc *ast.Location) (operand, ast.Ref) {
	name, _ := ref[0].Value.(ast.Var)
	if o, ok := s.bound[name]; ok {
		return o, ref[1:]
	}
	switch {
	case ref.HasPrefix(ast.InputRootRef):
		return operand{isInput: true}, ref[1:]
	case ref.HasPrefix(ast.DefaultRootRef):
		for i := 1; i <= len(ref); i++ {
			if rules := s.compiler.GetRulesExact(ref[:i]); len(rules) > 0 {
				if value := constantOf(rules); value != nil {
					return s.operand(value), ref[i:]
				}
				one := s.ruleOf(ref[:i], rules)
				return operand{eval: one.rule.eval}, ref[i:]
			}
		}
		s.fail(loc, ref.String()+" is no single rule", "name one rule")
	}
	s.fail(loc, fmt.Sprintf("a variable (%s) takes many values where one is asked for", name), "compare it with one value first")
	return operand{}, nil
}

// constantOf is the value of a rule that is a constant, such as name := 20; nil of any other. What it names is known before the
// evaluation then, like a literal.
func constantOf(rules []*ast.Rule) *ast.Term {
	if len(rules) != 1 {
		return nil
	}
	one := rules[0]
	if one.Default || one.Else != nil || len(one.Head.Args) > 0 || one.Head.RuleKind() != ast.SingleValue || len(one.Body) != 1 ||
		one.Head.Value == nil || !ast.IsConstant(one.Head.Value.Value) {
		return nil
	}
	if body, ok := one.Body[0].Terms.(*ast.Term); !ok || one.Body[0].Negated || len(one.Body[0].With) > 0 || !body.Equal(ast.BooleanTerm(true)) {
		return nil
	}
	return one.Head.Value
}

// follow follows keys. Those of the input are put off until what they lead to is used.
func (s *scope) follow(o operand, keys ast.Ref, loc *ast.Location) operand {
	for i, key := range keys {
		if !o.isInput {
			return s.lookUp(o.eval, keys[i:])
		}
		name, constant := s.operand(key).textLiteral()
		if !constant {
			return s.lookUp(s.whole(o, loc).use(s.Translator), keys[i:])
		}
		path := append(append([]string{}, o.keys...), name)
		field := s.source(path)
		if field != nil && len(field.Keys) < len(path) {
			return s.lookUp(s.whole(o, loc).use(s.Translator), keys[i:])
		}
		o = operand{isInput: true, keys: path, field: field}
	}
	return o // perhaps a part of the input with fields; whole refuses it where it is used as a value
}

// whole makes sure that a part of the input can be used as a value.
func (s *scope) whole(o operand, loc *ast.Location) operand {
	if !o.isInput || o.field != nil {
		return o
	}
	name := "input"
	for _, key := range o.keys {
		name += "." + key
	}
	s.fail(loc, name+" is used as a whole", "name its fields, such as input.candidate.cores")
	return o
}

// textLiteral is the constant string that an operand is.
func (o operand) textLiteral() (string, bool) {
	if o.literal == nil {
		return "", false
	}
	return o.literal.Text()
}

// lookUp follows keys that are bound.
func (s *scope) lookUp(in eval, keys ast.Ref) operand {
	for _, key := range keys {
		k := s.value(key)
		container := in
		in = func(f *Frame) (Value, bool) {
			v, ok := container(f)
			if !ok {
				return v, false
			}
			key, ok := k(f)
			if !ok {
				return v, false
			}
			return v.At(key)
		}
	}
	return operand{eval: in}
}

// value is the reader of a term.
func (s *scope) value(term *ast.Term) eval {
	return s.whole(s.operand(term), term.Location).use(s.Translator)
}
