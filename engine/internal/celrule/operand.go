// SPDX-License-Identifier: Apache-2.0

package celrule

import (
	"math"
	"unicode/utf8"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"

	"github.com/metalaw/metalaw/engine"
)

// Operand yields a value of one kind, by the one of its functions that is for it. Where a function says false there is no
// value, which makes each expression that reads it an error.
type Operand[F any] struct {
	// Kind is the type that CEL sees, which knows neither enums nor ages: Bool, Int, Duration, String or Set; 0 is no operand.
	Kind engine.Kind
	// Bool is for Bool.
	Bool func(F) (value, ok bool)
	// Number is for Int and Duration.
	Number func(F) (value int64, ok bool)
	// Text is for String.
	Text func(F) (value string, ok bool)
	// Words is for Set.
	Words func(F) (value []string, ok bool)
}

// Source says how the names in an expression are read from an F.
type Source[F any] struct {
	// Fact reads a variable; its Kind is 0 for a name that is none.
	Fact func(name string) Operand[F]
	// Labels reads a variable that maps words to words; nil where there is none of this name.
	Labels func(name string) func(F) map[string]string
	// Label is the function that reads one of Labels, and is empty where it is not there: label(labels, "a"). Without a
	// name there is no such function.
	Label string
}

// operand translates a fact, a literal, a label or a sum.
func (c *nativeCompiler[F]) operand(e celast.Expr) Operand[F] {
	if name := Name(c.ast, e); name != "" {
		if fact := c.source.Fact(name); fact.Kind != 0 {
			return fact
		}
	}
	if d, ok := DurationLiteral(e); ok {
		return number[F](engine.Duration, int64(d))
	}
	switch e.Kind() {
	case celast.CallKind:
		return c.computed(e.AsCall())
	case celast.SelectKind:
		if s := e.AsSelect(); !s.IsTestOnly() {
			return labelOf(c.labels(s.Operand()), s.FieldName(), false)
		}
	case celast.LiteralKind:
		return literal[F](e.AsLiteral().Value())
	}
	return Operand[F]{}
}

func literal[F any](value any) Operand[F] {
	switch v := value.(type) {
	case bool:
		return Operand[F]{Kind: engine.Bool, Bool: func(F) (bool, bool) { return v, true }}
	case int64:
		return number[F](engine.Int, v)
	case string:
		return Operand[F]{Kind: engine.String, Text: func(F) (string, bool) { return v, true }}
	}
	return Operand[F]{}
}

func number[F any](kind engine.Kind, n int64) Operand[F] {
	return Operand[F]{Kind: kind, Number: func(F) (int64, bool) { return n, true }}
}

// computed translates an operand that is made of others: one of the labels, or a sum of whole numbers. Where CEL ends with an
// error there is no value.
func (c *nativeCompiler[F]) computed(call celast.CallExpr) Operand[F] {
	args := call.Args()
	if call.FunctionName() == operators.Index {
		return c.label(args, false)
	}
	if call.FunctionName() == c.source.Label && c.source.Label != "" {
		return c.label(args, true)
	}
	if call.FunctionName() == overloads.Size {
		return c.size(call)
	}
	compute, ok := arithmetic[call.FunctionName()]
	if !ok || len(args) != 2 {
		return Operand[F]{}
	}
	left, right := c.operand(args[0]), c.operand(args[1])
	if left.Kind != engine.Int || right.Kind != engine.Int {
		return Operand[F]{}
	}
	return Operand[F]{Kind: engine.Int, Number: func(f F) (int64, bool) {
		a, knowsA := left.Number(f)
		b, knowsB := right.Number(f)
		if !knowsA || !knowsB {
			return 0, false
		}
		return compute(a, b)
	}}
}

// size translates the length of a text, in characters.
func (c *nativeCompiler[F]) size(call celast.CallExpr) Operand[F] {
	of := call.Target()
	if !call.IsMemberFunction() {
		of = call.Args()[0]
	}
	text := c.operand(of)
	if text.Kind != engine.String {
		return Operand[F]{}
	}
	return Operand[F]{Kind: engine.Int, Number: func(f F) (int64, bool) {
		value, ok := text.Text(f)
		return int64(utf8.RuneCountInString(value)), ok
	}}
}

// labels is the variable that maps words to words, if the expression is that.
func (c *nativeCompiler[F]) labels(e celast.Expr) func(F) map[string]string {
	name := Name(c.ast, e)
	if name == "" || c.source.Labels == nil {
		return nil
	}
	return c.source.Labels(name)
}

// label translates labels["key"] and label(labels, "key").
func (c *nativeCompiler[F]) label(args []celast.Expr, orEmpty bool) Operand[F] {
	if len(args) != 2 {
		return Operand[F]{}
	}
	key, ok := StringLiteral(args[1])
	if !ok {
		return Operand[F]{}
	}
	return labelOf(c.labels(args[0]), key, orEmpty)
}

// labelOf reads one of the labels. One that is not there is empty, or no value.
func labelOf[F any](labels func(F) map[string]string, key string, orEmpty bool) Operand[F] {
	if labels == nil {
		return Operand[F]{}
	}
	return Operand[F]{Kind: engine.String, Text: func(f F) (string, bool) {
		value, has := labels(f)[key]
		return value, has || orEmpty
	}}
}

// arithmetic of whole numbers; false where CEL ends with an error, because the result is too large or does not exist.
var arithmetic = map[string]func(a, b int64) (int64, bool){
	operators.Add: func(a, b int64) (int64, bool) {
		sum := a + b
		return sum, (sum > a) == (b > 0)
	},
	operators.Subtract: func(a, b int64) (int64, bool) {
		difference := a - b
		return difference, (difference < a) == (b > 0)
	},
	operators.Multiply: func(a, b int64) (int64, bool) {
		if a == 0 || b == 0 {
			return 0, true
		}
		product := a * b
		return product, product/b == a && (a != -1 || b != math.MinInt64) && (b != -1 || a != math.MinInt64)
	},
	operators.Divide: func(a, b int64) (int64, bool) {
		if b == 0 || (a == math.MinInt64 && b == -1) {
			return 0, false
		}
		return a / b, true
	},
	operators.Modulo: func(a, b int64) (int64, bool) {
		if b == 0 || (a == math.MinInt64 && b == -1) {
			return 0, false
		}
		return a % b, true
	},
}
