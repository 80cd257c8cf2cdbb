// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/metalaw/metalaw/engine"
)

// native evaluates an expression in the fragment of CEL of which definitions are made almost entirely: comparisons of
// facts with literals and with each other, membership, and the logical operators. It yields what CEL yields, at a small
// part of the cost: an expression outside the fragment stays with CEL, and so does the wording of every error.
type native func(engine.Facts) truth

// operand yields a value; a Missing one makes whatever reads it an error.
type operand func(engine.Facts) engine.Value

// nativeCompiler translates one checked expression.
type nativeCompiler struct {
	ast        *celast.AST
	vocabulary *engine.Vocabulary
}

// compileNative returns nil for an expression outside the fragment.
func compileNative(ast *celast.AST, v *engine.Vocabulary) native {
	c := &nativeCompiler{ast: ast, vocabulary: v}
	return c.truth(ast.Expr())
}

// truth translates an expression that yields a boolean.
func (c *nativeCompiler) truth(e celast.Expr) native {
	if e.Kind() == celast.CallKind {
		return c.call(e.AsCall())
	}
	value, kind := c.operand(e)
	if value == nil || kind != engine.Bool {
		return nil
	}
	return func(f engine.Facts) truth {
		v := value(f)
		if v.Missing() {
			return isError
		}
		return truthOf(v.Bool())
	}
}

func (c *nativeCompiler) call(call celast.CallExpr) native {
	args := call.Args()
	switch call.FunctionName() {
	case operators.LogicalNot:
		return negated(c.truth(args[0]))
	case operators.LogicalAnd:
		return c.combined(args, isFalse, isTrue)
	case operators.LogicalOr:
		return c.combined(args, isTrue, isFalse)
	case operators.Equals:
		return c.equal(args[0], args[1])
	case operators.NotEquals:
		return negated(c.equal(args[0], args[1]))
	case operators.Less:
		return c.ordered(args[0], args[1], func(a, b int64) bool { return a < b })
	case operators.LessEquals:
		return c.ordered(args[0], args[1], func(a, b int64) bool { return a <= b })
	case operators.Greater:
		return c.ordered(args[0], args[1], func(a, b int64) bool { return a > b })
	case operators.GreaterEquals:
		return c.ordered(args[0], args[1], func(a, b int64) bool { return a >= b })
	case operators.In:
		return c.member(args[0], args[1])
	}
	return nil
}

func negated(of native) native {
	if of == nil {
		return nil
	}
	return func(f engine.Facts) truth {
		switch of(f) {
		case isTrue:
			return isFalse
		case isFalse:
			return isTrue
		default:
			return isError
		}
	}
}

// combined follows CEL, whose logical operators are commutative: a side that decides outweighs an error on the other.
func (c *nativeCompiler) combined(args []celast.Expr, decisive, otherwise truth) native {
	kids := make([]native, len(args))
	for i, arg := range args {
		if kids[i] = c.truth(arg); kids[i] == nil {
			return nil
		}
	}
	return func(f engine.Facts) truth {
		result := otherwise
		for _, kid := range kids {
			switch kid(f) {
			case decisive:
				return decisive
			case isError:
				result = isError
			case notEvaluated, isFalse, isTrue:
				// it decides nothing
			}
		}
		return result
	}
}

// operand translates a fact or a literal. A kind of 0 is none that the fragment knows.
func (c *nativeCompiler) operand(e celast.Expr) (operand, engine.Kind) {
	if reference, ok := c.ast.ReferenceMap()[e.ID()]; ok && reference.Name != "" {
		if i, ok := c.vocabulary.Index(reference.Name); ok {
			return func(f engine.Facts) engine.Value { return f.Fact(i) }, celKind(c.vocabulary.Facts[i].Kind)
		}
	}
	if d, ok := durationLiteral(e); ok {
		return constant(engine.DurationValue(d)), engine.Duration
	}
	if e.Kind() != celast.LiteralKind {
		return nil, 0
	}
	switch v := e.AsLiteral().Value().(type) {
	case bool:
		return constant(engine.BoolValue(v)), engine.Bool
	case int64:
		return constant(engine.IntValue(v)), engine.Int
	case string:
		return constant(engine.StringValue(v)), engine.String
	}
	return nil, 0
}

func constant(v engine.Value) operand { return func(engine.Facts) engine.Value { return v } }

// celKind is the kind that CEL sees: it knows neither enums nor ages.
func celKind(k engine.Kind) engine.Kind {
	switch k {
	case engine.Enum:
		return engine.String
	case engine.Age:
		return engine.Duration
	default:
		return k
	}
}

// pair evaluates two operands of one kind and compares them.
func (c *nativeCompiler) pair(left, right celast.Expr, holds func(kind engine.Kind, a, b engine.Value) bool, kinds ...engine.Kind) native {
	a, kind := c.operand(left)
	b, other := c.operand(right)
	if a == nil || b == nil || kind != other || !slices.Contains(kinds, kind) {
		return nil
	}
	return func(f engine.Facts) truth {
		x, y := a(f), b(f)
		if x.Missing() || y.Missing() {
			return isError
		}
		return truthOf(holds(kind, x, y))
	}
}

func (c *nativeCompiler) equal(left, right celast.Expr) native {
	return c.pair(left, right, func(kind engine.Kind, a, b engine.Value) bool {
		switch kind {
		case engine.Bool:
			return a.Bool() == b.Bool()
		case engine.Int:
			return a.Int() == b.Int()
		case engine.Duration:
			return a.Duration() == b.Duration()
		default:
			return a.Text() == b.Text()
		}
	}, engine.Bool, engine.Int, engine.Duration, engine.String)
}

func (c *nativeCompiler) ordered(left, right celast.Expr, holds func(a, b int64) bool) native {
	return c.pair(left, right, func(kind engine.Kind, a, b engine.Value) bool {
		if kind == engine.Int {
			return holds(a.Int(), b.Int())
		}
		return holds(int64(a.Duration()), int64(b.Duration()))
	}, engine.Int, engine.Duration)
}

// member translates a word in a set, and a word in a list of literal words.
func (c *nativeCompiler) member(word, in celast.Expr) native {
	value, kind := c.operand(word)
	if value == nil || kind != engine.String {
		return nil
	}
	if in.Kind() == celast.ListKind {
		return c.oneOf(value, in.AsList())
	}
	set, kind := c.operand(in)
	if set == nil || kind != engine.Set {
		return nil
	}
	return func(f engine.Facts) truth {
		v, words := value(f), set(f)
		if v.Missing() || words.Missing() {
			return isError
		}
		return truthOf(words.Has(v.Text()))
	}
}

// oneOf leaves an empty list to CEL, which does not look at the word then: one that is missing is no error.
func (c *nativeCompiler) oneOf(value operand, list celast.ListExpr) native {
	if list.Size() == 0 {
		return nil
	}
	words := make([]string, 0, list.Size())
	for _, element := range list.Elements() {
		word, ok := stringLiteral(element)
		if !ok {
			return nil
		}
		words = append(words, word)
	}
	return func(f engine.Facts) truth {
		v := value(f)
		if v.Missing() {
			return isError
		}
		return truthOf(slices.Contains(words, v.Text()))
	}
}
