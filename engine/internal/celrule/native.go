// SPDX-License-Identifier: Apache-2.0

package celrule

import (
	"cmp"
	"slices"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/metalaw/metalaw/engine"
)

// Native evaluates an expression in the fragment of CEL of which rules are made almost entirely: comparisons of facts with
// literals and with each other, membership, how a text begins and ends, sums, and the logical operators. It yields what CEL
// yields, at a small part of the cost: an expression outside the fragment stays with CEL, and so does the wording of every
// error.
type Native[F any] func(F) Truth

// nativeCompiler translates one checked expression.
type nativeCompiler[F any] struct {
	ast    *celast.AST
	source Source[F]
}

// CompileNative returns nil for an expression outside the fragment.
func CompileNative[F any](ast *celast.AST, source Source[F]) Native[F] {
	c := &nativeCompiler[F]{ast: ast, source: source}
	return c.truth(ast.Expr())
}

// truth translates an expression that yields a boolean.
func (c *nativeCompiler[F]) truth(e celast.Expr) Native[F] {
	if e.Kind() == celast.CallKind {
		return c.call(e.AsCall())
	}
	value := c.operand(e)
	if value.Kind != engine.Bool {
		return nil
	}
	return test(value.Bool, func(v bool) bool { return v })
}

// test asks one value, which is an error where there is none.
func test[F, V any](value func(F) (V, bool), holds func(V) bool) Native[F] {
	return func(f F) Truth {
		v, ok := value(f)
		if !ok {
			return Failed
		}
		return TruthOf(holds(v))
	}
}

// compare asks two values.
func compare[F, V, W any](a func(F) (V, bool), b func(F) (W, bool), holds func(V, W) bool) Native[F] {
	return func(f F) Truth {
		x, knowsX := a(f)
		y, knowsY := b(f)
		if !knowsX || !knowsY {
			return Failed
		}
		return TruthOf(holds(x, y))
	}
}

func (c *nativeCompiler[F]) call(call celast.CallExpr) Native[F] {
	args := call.Args()
	switch call.FunctionName() {
	case operators.LogicalNot:
		return negated(c.truth(args[0]))
	case operators.LogicalAnd:
		return c.combined(args, False, True)
	case operators.LogicalOr:
		return c.combined(args, True, False)
	case operators.Equals:
		return c.equal(args[0], args[1])
	case operators.NotEquals:
		return negated(c.equal(args[0], args[1]))
	case operators.Less:
		return c.ordered(args[0], args[1], func(order int) bool { return order < 0 })
	case operators.LessEquals:
		return c.ordered(args[0], args[1], func(order int) bool { return order <= 0 })
	case operators.Greater:
		return c.ordered(args[0], args[1], func(order int) bool { return order > 0 })
	case operators.GreaterEquals:
		return c.ordered(args[0], args[1], func(order int) bool { return order >= 0 })
	case operators.Conditional:
		return conditional(c.truth(args[0]), c.truth(args[1]), c.truth(args[2]))
	case operators.In:
		return c.member(args[0], args[1])
	}
	if holds, ok := textTests[call.FunctionName()]; ok && call.IsMemberFunction() {
		return c.texts(call.Target(), args[0], holds)
	}
	return nil
}

// textTests are the functions that look at a text.
var textTests = map[string]func(text, part string) bool{
	"startsWith": strings.HasPrefix, "endsWith": strings.HasSuffix, "contains": strings.Contains,
}

func conditional[F any](condition, then, otherwise Native[F]) Native[F] {
	if condition == nil || then == nil || otherwise == nil {
		return nil
	}
	return func(f F) Truth {
		switch condition(f) {
		case True:
			return then(f)
		case False:
			return otherwise(f)
		default:
			return Failed
		}
	}
}

func negated[F any](of Native[F]) Native[F] {
	if of == nil {
		return nil
	}
	return func(f F) Truth {
		switch of(f) {
		case True:
			return False
		case False:
			return True
		default:
			return Failed
		}
	}
}

// combined follows CEL, whose logical operators are commutative: a side that decides outweighs an error on the other.
func (c *nativeCompiler[F]) combined(args []celast.Expr, decisive, otherwise Truth) Native[F] {
	kids := make([]Native[F], len(args))
	for i, arg := range args {
		if kids[i] = c.truth(arg); kids[i] == nil {
			return nil
		}
	}
	return func(f F) Truth {
		result := otherwise
		for _, kid := range kids {
			switch kid(f) {
			case decisive:
				return decisive
			case Failed:
				result = Failed
			case Unknown, False, True:
				// it decides nothing
			}
		}
		return result
	}
}

func (c *nativeCompiler[F]) equal(left, right celast.Expr) Native[F] {
	switch c.operand(left).Kind {
	case engine.Bool:
		return c.bools(left, right)
	case engine.Int, engine.Duration:
		return c.numbers(left, right, func(a, b int64) bool { return a == b })
	case engine.String:
		if word, ok := StringLiteral(right); ok { // what most comparisons are
			return test(c.operand(left).Text, func(v string) bool { return v == word })
		}
		return c.texts(left, right, func(a, b string) bool { return a == b })
	default:
		return nil
	}
}

func (c *nativeCompiler[F]) bools(left, right celast.Expr) Native[F] {
	a, b := c.operand(left), c.operand(right)
	if a.Kind != engine.Bool || b.Kind != engine.Bool {
		return nil
	}
	return compare(a.Bool, b.Bool, func(x, y bool) bool { return x == y })
}

// ordered compares what has an order: numbers, lengths of time and texts.
func (c *nativeCompiler[F]) ordered(left, right celast.Expr, holds func(order int) bool) Native[F] {
	if c.operand(left).Kind == engine.String {
		return c.texts(left, right, func(a, b string) bool { return holds(cmp.Compare(a, b)) })
	}
	return c.numbers(left, right, func(a, b int64) bool { return holds(cmp.Compare(a, b)) })
}

// numbers compares two whole numbers, or two lengths of time.
func (c *nativeCompiler[F]) numbers(left, right celast.Expr, holds func(a, b int64) bool) Native[F] {
	a, b := c.operand(left), c.operand(right)
	if a.Kind != b.Kind || (a.Kind != engine.Int && a.Kind != engine.Duration) {
		return nil
	}
	return compare(a.Number, b.Number, holds)
}

// texts compares two texts.
func (c *nativeCompiler[F]) texts(left, right celast.Expr, holds func(a, b string) bool) Native[F] {
	a, b := c.operand(left), c.operand(right)
	if a.Kind != engine.String || b.Kind != engine.String {
		return nil
	}
	return compare(a.Text, b.Text, holds)
}

// member translates a word in a set, a key of labels, and a value in a list of literals.
func (c *nativeCompiler[F]) member(value, in celast.Expr) Native[F] {
	one := c.operand(value)
	if in.Kind() == celast.ListKind {
		return oneOf(one, in.AsList())
	}
	if one.Kind != engine.String {
		return nil
	}
	if labels := c.labels(in); labels != nil {
		return func(f F) Truth {
			word, ok := one.Text(f)
			if !ok {
				return Failed
			}
			_, has := labels(f)[word]
			return TruthOf(has)
		}
	}
	set := c.operand(in)
	if set.Kind != engine.Set {
		return nil
	}
	return compare(set.Words, one.Text, slices.Contains[[]string])
}

// oneOf leaves an empty list to CEL, which does not look at the value then: one that is missing is no error.
func oneOf[F any](value Operand[F], list celast.ListExpr) Native[F] {
	var words []string
	var numbers []int64
	for _, element := range list.Elements() {
		if element.Kind() != celast.LiteralKind {
			return nil
		}
		switch v := element.AsLiteral().Value().(type) {
		case string:
			words = append(words, v)
		case int64:
			numbers = append(numbers, v)
		}
	}
	switch {
	case value.Kind == engine.String && len(words) == list.Size() && len(words) > 0:
		return test(value.Text, func(v string) bool { return slices.Contains(words, v) })
	case value.Kind == engine.Int && len(numbers) == list.Size() && len(numbers) > 0:
		return test(value.Number, func(v int64) bool { return slices.Contains(numbers, v) })
	}
	return nil
}
