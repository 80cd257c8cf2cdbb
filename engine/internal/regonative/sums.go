// SPDX-License-Identifier: Apache-2.0

package regonative

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Sum is a rule as what its factors add up to. Inputs need not be told apart by what only such a rule reads: adding a few
// numbers up takes less than finding what was said of an input that agrees in all of them, of which there may be none.
type Sum struct {
	constant int64
	// weights are those of all factors of the program.
	weights []weight
}

// weight is how often the number of a factor is added; counts says that it is a part of the sum.
type weight struct {
	times  int64
	counts bool
}

// Total is what the factors of an input add up to.
type Total struct {
	n     int64
	marks marks
}

// Of is the value of the rule: ok is false where the sum does not know it, and defined where the rule has one.
func (s *Sum) Of(t Total) (n int64, defined, ok bool) {
	return s.constant + t.n, t.marks&isDefined != 0, t.marks&isSummand != 0
}

// marks are what is to be known of an answer before it is added. A total has those that all its answers have.
type marks uint8

const (
	isSaid marks = 1 << iota
	// isDefined: the rule has a value, or it is no part of the sum.
	isDefined
	// isSummand: it is a whole number, and so small that no sum of them overflows; or it is undefined, or no part of the sum.
	isSummand
	isAll = isSaid | isDefined | isSummand
)

const (
	// mostSummand bounds the numbers that are added, and mostTimes how often all of them together. No sum overflows.
	mostSummand = 1 << 40
	mostTimes   = 1 << 20
)

// part is what the answer of a factor adds to a sum, which may be nil.
func (s *Sum) part(factor int, v Value, defined bool) (int64, marks) {
	switch {
	case s == nil || !s.weights[factor].counts:
		return 0, isAll
	case !defined:
		return 0, isSaid | isSummand
	case v.kind != isInt || v.n > mostSummand || v.n < -mostSummand:
		return 0, isSaid | isDefined
	}
	return s.weights[factor].times * v.n, isAll
}

// linear is a rule as a sum of constants and of other rules, each so many times. A rule that is there no times has to be defined
// all the same.
type linear struct {
	constant int64
	times    map[*translated]int64
}

func (l *linear) plus(other *linear, times int64) *linear {
	sum := &linear{constant: l.constant + times*other.constant, times: map[*translated]int64{}}
	for rule, n := range l.times {
		sum.times[rule] += n
	}
	for rule, n := range other.times {
		sum.times[rule] += times * n
	}
	return sum
}

// fits says that no total of it can overflow.
func (l *linear) fits() bool {
	all := int64(0)
	for _, n := range l.times {
		if n > mostTimes || n < -mostTimes {
			return false
		}
		all += max(n, -n)
	}
	return all <= mostTimes && l.constant <= mostSummand && l.constant >= -mostSummand
}

// linearOf reads a rule that was translated as a sum; nil where it is none, or holds on a condition.
func (t *Translator) linearOf(rules []*ast.Rule) *linear {
	if len(rules) != 1 {
		return nil
	}
	one := rules[0]
	if one.Default || one.Else != nil || len(one.Head.Args) > 0 || one.Head.RuleKind() != ast.SingleValue || one.Head.Value == nil {
		return nil
	}
	known := map[ast.Var]*linear{}
	needed := &linear{}
	for _, expr := range one.Body {
		into, value := t.summing(expr, known)
		if value == nil || !value.fits() {
			return nil
		}
		if into != "" {
			known[into] = value
		}
		needed = needed.plus(value, 0)
	}
	value := t.summand(one.Head.Value, known)
	if value == nil {
		return nil
	}
	return value.plus(needed, 0)
}

// summing is what an expression of a body gives to a variable; nil where it is none that a sum is made of.
func (t *Translator) summing(expr *ast.Expr, known map[ast.Var]*linear) (into ast.Var, value *linear) {
	if expr.Negated || len(expr.With) > 0 {
		return "", nil
	}
	terms, isCall := expr.Terms.([]*ast.Term)
	if !isCall {
		if term, ok := expr.Terms.(*ast.Term); ok && term.Equal(ast.BooleanTerm(true)) {
			return "", &linear{}
		}
		return "", nil
	}
	operation, args := terms[0].String(), terms[1:]
	switch operation {
	case ast.Equality.Name:
		into, _ = args[0].Value.(ast.Var)
		value = t.summand(args[1], known)
	case ast.Plus.Name, ast.Minus.Name, ast.Multiply.Name:
		if len(args) == 3 {
			into, _ = args[2].Value.(ast.Var)
			value = combined(operation, t.summand(args[0], known), t.summand(args[1], known))
		}
	}
	if into == "" || known[into] != nil {
		return "", nil
	}
	return into, value
}

// combined is what two sums come to.
func combined(operation string, a, b *linear) *linear {
	switch {
	case a == nil || b == nil:
		return nil
	case operation == ast.Plus.Name:
		return a.plus(b, 1)
	case operation == ast.Minus.Name:
		return a.plus(b, -1)
	case b.isFactor():
		return (&linear{}).plus(a, b.constant)
	case a.isFactor():
		return (&linear{}).plus(b, a.constant)
	}
	return nil
}

// isFactor says that another sum can be taken so many times.
func (l *linear) isFactor() bool {
	return len(l.times) == 0 && l.constant <= mostTimes && l.constant >= -mostTimes
}

// summand is a term as a sum: a whole number, a variable that is one, or a rule.
func (t *Translator) summand(term *ast.Term, known map[ast.Var]*linear) *linear {
	switch v := term.Value.(type) {
	case ast.Number:
		if n, ok := Of(v).Number(); ok && n <= mostTimes && n >= -mostTimes {
			return &linear{constant: n}
		}
	case ast.Var:
		return known[v]
	case ast.Ref:
		rules := t.compiler.GetRulesExact(v)
		if value := constantOf(rules); value != nil {
			return t.summand(value, nil)
		}
		if rule := t.rules[v.String()]; rule != nil && len(rules) > 0 {
			return &linear{times: map[*translated]int64{rule: 1}}
		}
	}
	return nil
}

// mostFields is how many fields a summand may read to be a factor. Most of what a rule reads goes together, as the parts of a
// machine do; one that reads more is looked at as what it adds up.
const mostFields = 6

// summands are the rules that a rule adds up, those that read too much as what they add up in turn; nil where that is not possible.
func (r *translated) summands() *linear {
	if r.sum == nil {
		return nil
	}
	flat := &linear{constant: r.sum.constant}
	for rule, times := range r.sum.times {
		reads := len(rule.all.Of(Varies))
		inner := &linear{times: map[*translated]int64{rule: 1}}
		if reads > coarse && rule.sum != nil {
			inner = rule.summands()
		} else if reads > mostFields {
			return nil
		}
		if inner == nil {
			return nil
		}
		flat = flat.plus(inner, times)
		if !flat.fits() {
			return nil
		}
	}
	return flat
}

// inOrder are the rules of a sum, in the order in which they were translated.
func (l *linear) inOrder() []*translated {
	all := make([]*translated, 0, len(l.times))
	for rule := range l.times {
		all = append(all, rule)
	}
	slices.SortFunc(all, func(a, b *translated) int { return a.rule.number - b.rule.number })
	return all
}
