// SPDX-License-Identifier: Apache-2.0

package verify

import (
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/celrule"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// formOp is what a form is.
type formOp uint8

const (
	formConst formOp = iota
	formPrimitive
	// formState holds in the state of the name in word.
	formState
	formNot
	formAnd
	formOr
	formIff
	formIte
)

// form is a CEL expression as logic over primitives: what cannot be taken apart any further.
type form struct {
	op        formOp
	value     bool
	word      string
	primitive int
	kids      []*form
}

func (r *reader) use(p *primitive) *form {
	key := p.key()
	i, ok := r.known[key]
	if !ok {
		i = len(r.primitives)
		r.known[key] = i
		r.primitives = append(r.primitives, p)
	}
	return &form{op: formPrimitive, primitive: i}
}

// fact returns the position of the fact that an expression names.
func (r *reader) fact(e celast.Expr) (int, engine.FactType, bool) {
	return lifecycle.FactOf(r.words, r.typed, e)
}

func (r *reader) form(e celast.Expr) *form {
	if i, f, ok := r.fact(e); ok && f.Kind == engine.Bool {
		return r.use(&primitive{kind: isTrue, fact: i})
	}
	switch e.Kind() {
	case celast.LiteralKind:
		if b, ok := e.AsLiteral().(types.Bool); ok {
			return &form{op: formConst, value: bool(b)}
		}
	case celast.CallKind:
		if f := r.call(e.AsCall()); f != nil {
			return f
		}
	}
	return r.opaque(e)
}

func (r *reader) combined(op formOp, all []celast.Expr) *form {
	f := &form{op: op}
	for _, e := range all {
		f.kids = append(f.kids, r.form(e))
	}
	return f
}

func (r *reader) call(c celast.CallExpr) *form {
	switch c.FunctionName() {
	case operators.LogicalNot:
		return r.combined(formNot, c.Args())
	case operators.LogicalAnd:
		return r.combined(formAnd, c.Args())
	case operators.LogicalOr:
		return r.combined(formOr, c.Args())
	case operators.Conditional:
		return r.combined(formIte, c.Args())
	case operators.Equals:
		return r.equality(c.Args()[0], c.Args()[1])
	case operators.NotEquals:
		return negated(r.equality(c.Args()[0], c.Args()[1]))
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return r.order(c.FunctionName(), c.Args()[0], c.Args()[1])
	case operators.In:
		return r.membership(c.Args()[0], c.Args()[1])
	}
	return nil
}

func negated(f *form) *form {
	if f == nil {
		return nil
	}
	return &form{op: formNot, kids: []*form{f}}
}

func (r *reader) equality(a, b celast.Expr) *form {
	if r.isBool(a) && r.isBool(b) {
		return r.combined(formIff, []celast.Expr{a, b})
	}
	if f := r.word(a, b); f != nil {
		return f
	}
	if f := r.word(b, a); f != nil {
		return f
	}
	if f := r.sameWord(a, b); f != nil {
		return f
	}
	return r.compared(equal, a, b)
}

func (r *reader) isBool(e celast.Expr) bool {
	return r.typed.GetType(e.ID()).IsExactType(types.BoolType)
}

// word is the comparison of an enum, a string or the state with a literal.
func (r *reader) word(factSide, wordSide celast.Expr) *form {
	i, f, ok := r.fact(factSide)
	word, isLiteral := celrule.StringLiteral(wordSide)
	if !ok || !isLiteral {
		return nil
	}
	if f.Name == engine.FactState {
		r.inState = true
		return &form{op: formState, word: word}
	}
	return r.use(&primitive{kind: isWord, fact: i, word: word})
}

// sameWord compares two enums: they are equal where both have a word that both know.
func (r *reader) sameWord(a, b celast.Expr) *form {
	i, f, ok := r.fact(a)
	j, g, also := r.fact(b)
	if !ok || !also || f.Kind != engine.Enum || g.Kind != engine.Enum {
		return nil
	}
	same := &form{op: formOr}
	for _, w := range f.Values {
		for _, v := range g.Values {
			if v == w {
				same.kids = append(same.kids, &form{op: formAnd, kids: []*form{
					r.use(&primitive{kind: isWord, fact: i, word: w}), r.use(&primitive{kind: isWord, fact: j, word: w})}})
			}
		}
	}
	return same
}

// membership is a word in a set, or a fact in a list of literals.
func (r *reader) membership(element, container celast.Expr) *form {
	if i, f, ok := r.fact(container); ok && f.Kind == engine.Set {
		if word, isText := celrule.StringLiteral(element); isText {
			return r.use(&primitive{kind: isIn, fact: i, word: word})
		}
	}
	if container.Kind() != celast.ListKind {
		return nil
	}
	either := &form{op: formOr}
	for _, e := range container.AsList().Elements() {
		one := r.equality(element, e)
		if one == nil {
			return nil
		}
		either.kids = append(either.kids, one)
	}
	return either
}

// order writes the four comparisons as < and <= of the first operand.
func (r *reader) order(function string, a, b celast.Expr) *form {
	switch function {
	case operators.Less:
		return r.compared(less, a, b)
	case operators.LessEquals:
		return r.compared(lessOrEqual, a, b)
	case operators.Greater:
		return negated(r.compared(lessOrEqual, a, b))
	default:
		return negated(r.compared(less, a, b))
	}
}

// compared is the comparison of a number or a length of time with a literal or with another fact.
func (r *reader) compared(op comparison, a, b celast.Expr) *form {
	left, ok := r.operand(a)
	right, also := r.operand(b)
	if !ok || !also {
		return nil
	}
	return r.comparison(op, left, right)
}

// comparison brings a comparison into the one order of operands in which it is known: a fact first, and of two the earlier.
func (r *reader) comparison(op comparison, left, right operand) *form {
	switch {
	case left.fact < 0 && right.fact < 0:
		return &form{op: formConst, value: op.holds(left.literal, right.literal)}
	case left.fact == right.fact:
		return &form{op: formConst, value: op != less}
	case left.fact >= 0 && (right.fact < 0 || left.fact < right.fact):
		return r.use(&primitive{kind: isCompared, op: op, left: left, right: right})
	case op == equal:
		return r.use(&primitive{kind: isCompared, op: equal, left: right, right: left})
	case op == less: // a < b is !(b <= a)
		return negated(r.use(&primitive{kind: isCompared, op: lessOrEqual, left: right, right: left}))
	default:
		return negated(r.use(&primitive{kind: isCompared, op: less, left: right, right: left}))
	}
}

// operand is a fact of an ordered kind, or a literal.
func (r *reader) operand(e celast.Expr) (operand, bool) {
	if i, f, ok := r.fact(e); ok {
		return operand{fact: i}, f.Kind == engine.Int || f.Kind == engine.Duration || f.Kind == engine.Age
	}
	if n, ok := number(e); ok {
		return operand{fact: -1, literal: n}, true
	}
	return operand{}, false
}

// number reads 3, -1 and duration("5m").
func number(e celast.Expr) (int64, bool) {
	if e.Kind() == celast.LiteralKind {
		n, ok := e.AsLiteral().(types.Int)
		return int64(n), ok
	}
	if e.Kind() == celast.CallKind && e.AsCall().FunctionName() == operators.Negate && e.AsCall().Args()[0].Kind() == celast.LiteralKind {
		n, ok := number(e.AsCall().Args()[0])
		return -n, ok
	}
	d, ok := celrule.DurationLiteral(e)
	return int64(d), ok
}

// opaque is an expression that is not taken apart: it may be true, false or, where a function in it can fail, an error.
func (r *reader) opaque(e celast.Expr) *form {
	source, err := parser.Unparse(e, r.typed.SourceInfo())
	if err != nil {
		source = "?" // no expression of a definition fails here: all macros but marked() are left out
	}
	p := &primitive{kind: isOpaque, word: source}
	celast.PreOrderVisit(e, celast.NewExprVisitor(func(kid celast.Expr) {
		if i, _, ok := r.fact(kid); ok {
			p.reads = append(p.reads, i)
		}
		switch kid.Kind() {
		case celast.CallKind:
			p.canFail = p.canFail || !total[kid.AsCall().FunctionName()]
		case celast.LiteralKind:
			p.literals = append(p.literals, kid.AsLiteral().Value())
		}
	}))
	return r.use(p)
}

// total are the functions that have a value for each argument. Every other may fail, such as a division.
var total = map[string]bool{
	operators.LogicalNot: true, operators.LogicalAnd: true, operators.LogicalOr: true, operators.Conditional: true,
	operators.Equals: true, operators.NotEquals: true, operators.Less: true, operators.LessEquals: true,
	operators.Greater: true, operators.GreaterEquals: true, operators.In: true,
	"size": true, "startsWith": true, "endsWith": true, "contains": true, "lowerAscii": true, "upperAscii": true, "trim": true,
	"sets.contains": true, "sets.equivalent": true, "sets.intersects": true, "string": true,
}
