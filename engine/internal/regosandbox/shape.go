// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"math"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// shape bounds the values of a term. A part that a value holds twice counts twice, as OPA goes through it twice.
type shape struct {
	// closed and open count the parts that hold no others. A call puts its arguments in the place of the open ones.
	closed, open float64
	// height is how many collections are around a part.
	height int
	// several says that the value may have one of several types.
	several bool
}

var scalar = shape{closed: 1}

func (s shape) parts() float64 { return s.closed + s.open }

// work is how long OPA takes to go through the type: it compares each level of a collection, and each type of several, twice.
func (s shape) work() float64 { return s.parts() * math.Exp2(float64(s.height)) }

// part is the shape of any part of a value.
func (s shape) part() shape {
	s.height--
	return s.oneOf()
}

// oneOf is the shape of a value that has one of several types. All scalars together are few.
func (s shape) oneOf() shape {
	if s.height <= 0 {
		return shape{closed: min(s.closed, 1), open: min(s.open, 1)}
	}
	s.several = true
	return s
}

// holding is the shape of a collection with these parts.
func holding(parts ...shape) shape {
	all := together(parts...)
	all.height++
	return all
}

// either is the shape of a value that has one of two shapes; the zero shape is none.
func either(a, b shape) shape {
	if (a == shape{}) || (b == shape{}) {
		return together(a, b)
	}
	return together(a, b).oneOf()
}

func together(all ...shape) shape {
	var sum shape
	for _, one := range all {
		sum = shape{sum.closed + one.closed, sum.open + one.open, max(sum.height, one.height), sum.several || one.several}
	}
	return sum
}

// largest bounds each of some shapes.
func largest(all []shape) shape {
	var most shape
	for _, one := range all {
		most = shape{max(most.closed, one.closed), max(most.open, one.open), max(most.height, one.height), true}
	}
	return most
}

// called is the shape of what a function returns, given its arguments.
func (s shape) called(arguments shape) shape {
	if s.open == 0 {
		return s
	}
	return shape{s.closed + s.open*arguments.closed, s.open * arguments.open, s.height + arguments.height, s.several || arguments.several}
}

// repeated is the shape of a collection that holds one such part for each round of a loop.
func (s shape) repeated(rounds float64) shape {
	return shape{s.closed * rounds, s.open * rounds, s.height + 1, s.several}
}

// shapeOf is the shape of a type. What it holds any number of counts once.
func shapeOf(t types.Type) shape {
	var all shape
	switch t := t.(type) {
	case *types.Array:
		for i := range t.Len() {
			all = together(all, shapeOf(t.Select(i)))
		}
		if t.Dynamic() != nil {
			all = together(all, shapeOf(t.Dynamic()))
		}
	case *types.Set:
		all = shapeOf(t.Of())
	case *types.Object:
		for _, p := range t.StaticProperties() {
			all = together(all, shapeOf(p.Value))
		}
		if t.DynamicValue() != nil {
			all = together(all, shapeOf(t.DynamicValue()))
		}
	case types.Any:
		for _, one := range t {
			all = either(all, shapeOf(one))
		}
		return either(all, scalar)
	default:
		return scalar
	}
	return all.repeated(1)
}

// shapes goes through rules in the order in which OPA checks their types.
type shapes struct {
	env *ast.TypeEnv
	// rounds is how often a loop is taken to repeat a part.
	rounds float64
	// variables have unique names by now, and rules their full names.
	variables map[ast.Var]shape
	rules     map[string]shape
	packages  map[string]shape
	// replaced is the shape of what `with` puts in the place of documents in the present expression.
	replaced shape
	// most is the most parts that a value may have, and work what the comparisons take together.
	most, work float64
	// repetition is how often OPA checks the types of the present body.
	repetition float64
}

// shapesOf goes through all rules of a compiler, as long as it is asked to.
func shapesOf(c *ast.Compiler, rounds float64, goOn func(*shapes, *ast.Rule) bool) {
	s := &shapes{env: c.TypeEnv, rounds: rounds,
		variables: map[ast.Var]shape{}, rules: map[string]shape{}, packages: map[string]shape{}}
	sorted, _ := c.Graph.Sort()
	for _, node := range sorted {
		if rule, ok := node.(*ast.Rule); ok {
			s.rule(rule)
			if !goOn(s, rule) {
				return
			}
		}
	}
}

func (s *shapes) rule(rule *ast.Rule) {
	s.repetition = 1
	s.body(rule.Body)
	head := scalar
	switch {
	case rule.Head.Key != nil && rule.Head.Value != nil:
		head = together(s.of(rule.Head.Key), s.of(rule.Head.Value)).repeated(s.rounds)
	case rule.Head.Key != nil:
		head = s.of(rule.Head.Key).repeated(s.rounds)
	case rule.Head.Value != nil:
		head = s.of(rule.Head.Value)
	}
	for _, argument := range rule.Head.Args { // one that is compared has the type of what it is compared with
		if compared := s.of(argument); compared.height > 0 {
			head = either(head, compared)
		}
	}
	ref := rule.Ref()
	fixed := ref.GroundPrefix()
	for range ref[len(fixed):] {
		head = head.repeated(s.rounds)
	}
	name := fixed.String()
	s.rules[name] = s.noted(s.orElse(s.rules[name], head))
	for n := 1; n < len(fixed); n++ {
		of := fixed[:n].String()
		s.packages[of] = together(s.packages[of], holding(head))
	}
}

// orElse is the shape of a rule that is written twice. Where sizes are guessed no value counts what only another definition makes.
func (s *shapes) orElse(a, b shape) shape {
	if s.rounds > 1 {
		return largest([]shape{a, b})
	}
	return either(a, b)
}

// input is the shape of a part of the input. Where sizes are guessed it depends on how near to the whole the part is.
func (s *shapes) input(ref ast.Ref) shape {
	if s.rounds == 1 {
		return shapeOf(s.env.GetByRef(ref))
	}
	found := scalar
	for n := len(ref); n <= inputLevels; n++ {
		found = found.repeated(inputParts)
	}
	return found
}

func (s *shapes) noted(found shape) shape {
	s.most = max(s.most, found.parts())
	return found
}

func (s *shapes) body(body ast.Body) {
	for _, e := range body {
		outer := s.replaced
		for _, with := range e.With {
			s.replaced = holding(s.replaced, s.of(with.Value))
		}
		s.expression(e)
		s.replaced = outer
	}
}

func (s *shapes) expression(e *ast.Expr) {
	switch terms := e.Terms.(type) {
	case *ast.Term:
		s.of(terms)
	case *ast.Every:
		part := s.of(terms.Domain).part()
		for _, name := range []*ast.Term{terms.Key, terms.Value} {
			if name != nil {
				s.bind(name, part)
			}
		}
		s.body(terms.Body)
	case []*ast.Term:
		if result := s.call(terms); !e.IsEquality() {
			s.bind(terms[len(terms)-1], result) // the last one may be given the result
		}
	}
}

// call is the shape of what a function returns, with the work of comparing types that the call takes.
func (s *shapes) call(terms []*ast.Term) shape {
	name, operands := terms[0].String(), terms[1:]
	each := make([]shape, len(operands))
	for i, operand := range operands {
		each[i] = s.of(operand)
	}
	arguments := together(each...)
	if name == ast.Equality.Name && len(each) == 2 {
		s.compare(each[0], each[1])
		s.bind(operands[0], each[1])
		s.bind(operands[1], each[0])
		return scalar
	}
	if known, ok := ast.BuiltinMap[name]; ok {
		if len(each) > 1 && (name == ast.Member.Name || name == ast.MemberWithKey.Name) {
			s.compare(each[len(each)-2], each[len(each)-1])
		}
		if shapeOf(known.Decl.Result()).height == 0 && name != ast.Minus.Name {
			return scalar
		}
		return largest(each) // what it makes beyond that is bounded when it is called
	}
	function := s.of(terms[0])
	s.compare(function, arguments)
	return s.noted(function.called(arguments))
}

// compare adds the work of comparing two types. Of several, each is compared with each.
func (s *shapes) compare(a, b shape) {
	switch {
	case a.height == 0 || b.height == 0:
	case a.several || b.several:
		s.work += a.work() * b.work() * s.repetition
	default:
		s.work += min(a.work(), b.work()) * s.repetition
	}
}

// bind gives the variables of a pattern a shape, unless they have one.
func (s *shapes) bind(pattern *ast.Term, value shape) {
	switch v := pattern.Value.(type) {
	case ast.Var:
		if _, known := s.variables[v]; !known {
			s.variables[v] = value
		}
	case *ast.Array:
		v.Foreach(func(t *ast.Term) { s.bind(t, value.part()) })
	case ast.Object:
		v.Foreach(func(_, t *ast.Term) { s.bind(t, value.part()) })
	}
}

// of is the shape of a term. A variable that has none may stand for anything: it is an argument, or is given a value here.
func (s *shapes) of(t *ast.Term) shape {
	var parts []shape
	add := func(t *ast.Term) { parts = append(parts, s.of(t)) }
	switch v := t.Value.(type) {
	case ast.Var:
		if known, ok := s.variables[v]; ok {
			return known
		}
		return shape{open: 1}
	case ast.Ref:
		return s.ref(v)
	case ast.Call:
		return s.call(v)
	case *ast.ArrayComprehension:
		return s.loop(v.Body, v.Term)
	case *ast.SetComprehension:
		return s.loop(v.Body, v.Term)
	case *ast.ObjectComprehension:
		return s.loop(v.Body, v.Key, v.Value)
	case *ast.Array:
		v.Foreach(add)
	case ast.Set:
		v.Foreach(add)
	case ast.Object:
		v.Foreach(func(k, t *ast.Term) { add(k); add(t) })
	default:
		return scalar
	}
	return s.noted(holding(parts...))
}

// loop is the shape of a comprehension. OPA checks the types in each of them about three times.
func (s *shapes) loop(body ast.Body, terms ...*ast.Term) shape {
	s.repetition *= 3
	defer func() { s.repetition /= 3 }()
	s.body(body)
	var one shape
	for _, t := range terms {
		one = together(one, s.of(t))
	}
	return s.noted(one.repeated(s.rounds))
}

func (s *shapes) ref(ref ast.Ref) shape {
	found, keys := s.replaced, ref[1:]
	switch {
	case ref.HasPrefix(ast.InputRootRef):
		return either(s.input(ref), found)
	case ref.HasPrefix(ast.DefaultRootRef):
		known := ref
		for len(known) > 1 && s.rules[known.String()] == (shape{}) {
			known = known[:len(known)-1]
		}
		keys = ref[len(known):]
		if found = either(s.rules[known.String()], found); len(known) == 1 {
			return either(s.packages[ref.ConstantPrefix().String()], found)
		}
	default:
		found = s.of(ref[0])
	}
	for _, key := range keys {
		found = found.part()
		s.bind(key, scalar)
	}
	return found
}
