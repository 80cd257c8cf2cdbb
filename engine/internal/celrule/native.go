// SPDX-License-Identifier: Apache-2.0

package celrule

import (
	"slices"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/metalaw/metalaw/engine"
)

// Native evaluates an expression in the fragment of CEL of which rules are made almost entirely: comparisons of facts with
// literals and with each other, membership, how a text begins and ends, and the logical operators. It yields what CEL yields,
// at a small part of the cost: an expression outside the fragment stays with CEL, and so does the wording of every error.
type Native[F any] func(F) Truth

// Operand yields a value; a Missing one makes whatever reads it an error.
type Operand[F any] func(F) engine.Value

// Source says how the names in an expression are read from an F.
type Source[F any] struct {
	// Fact reads a variable; nil for a name that is none.
	Fact func(name string) (Operand[F], engine.Kind)
	// Labels reads a variable that maps words to words; nil where there is none of this name.
	Labels func(name string) func(F) map[string]string
	// Label is the function that reads one of Labels, and is empty where it is not there: label(labels, "a"). Without a
	// name there is no such function.
	Label string
}

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
	value, kind := c.operand(e)
	if value == nil || kind != engine.Bool {
		return nil
	}
	return func(f F) Truth {
		v := value(f)
		if v.Missing() {
			return Failed
		}
		return TruthOf(v.Bool())
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
	if holds, ok := textTests[call.FunctionName()]; ok && call.IsMemberFunction() {
		return c.pair(call.Target(), args[0], func(_ engine.Kind, a, b engine.Value) bool { return holds(a.Text(), b.Text()) }, engine.String)
	}
	return nil
}

// textTests are the functions that look at a text.
var textTests = map[string]func(text, part string) bool{
	"startsWith": strings.HasPrefix, "endsWith": strings.HasSuffix, "contains": strings.Contains,
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

// operand translates a fact, a literal, a label or a sum. A kind of 0 is none that the fragment knows.
func (c *nativeCompiler[F]) operand(e celast.Expr) (Operand[F], engine.Kind) {
	if name := c.name(e); name != "" {
		if read, kind := c.source.Fact(name); read != nil {
			return read, celKind(kind)
		}
	}
	if d, ok := DurationLiteral(e); ok {
		return constant[F](engine.DurationValue(d)), engine.Duration
	}
	switch e.Kind() {
	case celast.CallKind:
		return c.computed(e.AsCall())
	case celast.LiteralKind:
		return literal[F](e.AsLiteral().Value())
	}
	return nil, 0
}

// name is the variable that an expression is; empty where it is none.
func (c *nativeCompiler[F]) name(e celast.Expr) string {
	if reference, ok := c.ast.ReferenceMap()[e.ID()]; ok {
		return reference.Name
	}
	return ""
}

func literal[F any](value any) (Operand[F], engine.Kind) {
	switch v := value.(type) {
	case bool:
		return constant[F](engine.BoolValue(v)), engine.Bool
	case int64:
		return constant[F](engine.IntValue(v)), engine.Int
	case string:
		return constant[F](engine.StringValue(v)), engine.String
	}
	return nil, 0
}

func constant[F any](v engine.Value) Operand[F] { return func(F) engine.Value { return v } }

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
func (c *nativeCompiler[F]) pair(left, right celast.Expr, holds func(kind engine.Kind, a, b engine.Value) bool, kinds ...engine.Kind) Native[F] {
	a, kind := c.operand(left)
	b, other := c.operand(right)
	if a == nil || b == nil || kind != other || !slices.Contains(kinds, kind) {
		return nil
	}
	return func(f F) Truth {
		x, y := a(f), b(f)
		if x.Missing() || y.Missing() {
			return Failed
		}
		return TruthOf(holds(kind, x, y))
	}
}

func (c *nativeCompiler[F]) equal(left, right celast.Expr) Native[F] {
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

func (c *nativeCompiler[F]) ordered(left, right celast.Expr, holds func(a, b int64) bool) Native[F] {
	return c.pair(left, right, func(kind engine.Kind, a, b engine.Value) bool {
		if kind == engine.Int {
			return holds(a.Int(), b.Int())
		}
		return holds(int64(a.Duration()), int64(b.Duration()))
	}, engine.Int, engine.Duration)
}

// member translates a word in a set, and a word in a list of literal words.
func (c *nativeCompiler[F]) member(word, in celast.Expr) Native[F] {
	value, kind := c.operand(word)
	if value == nil || kind != engine.String {
		return nil
	}
	if in.Kind() == celast.ListKind {
		return c.oneOf(value, in.AsList())
	}
	if labels := c.labels(in); labels != nil {
		return func(f F) Truth {
			v := value(f)
			if v.Missing() {
				return Failed
			}
			_, has := labels(f)[v.Text()]
			return TruthOf(has)
		}
	}
	set, kind := c.operand(in)
	if set == nil || kind != engine.Set {
		return nil
	}
	return func(f F) Truth {
		v, words := value(f), set(f)
		if v.Missing() || words.Missing() {
			return Failed
		}
		return TruthOf(words.Has(v.Text()))
	}
}

// oneOf leaves an empty list to CEL, which does not look at the word then: one that is missing is no error.
func (c *nativeCompiler[F]) oneOf(value Operand[F], list celast.ListExpr) Native[F] {
	if list.Size() == 0 {
		return nil
	}
	words := make([]string, 0, list.Size())
	for _, element := range list.Elements() {
		word, ok := StringLiteral(element)
		if !ok {
			return nil
		}
		words = append(words, word)
	}
	return func(f F) Truth {
		v := value(f)
		if v.Missing() {
			return Failed
		}
		return TruthOf(slices.Contains(words, v.Text()))
	}
}
