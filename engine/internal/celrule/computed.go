// SPDX-License-Identifier: Apache-2.0

package celrule

import (
	"math"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/metalaw/metalaw/engine"
)

// computed translates an operand that is made of others: one of the labels, or a sum of whole numbers. Where CEL ends with an
// error the value is Missing.
func (c *nativeCompiler[F]) computed(call celast.CallExpr) (Operand[F], engine.Kind) {
	args := call.Args()
	if call.FunctionName() == operators.Index {
		return c.label(args, engine.Value{})
	}
	if call.FunctionName() == c.source.Label && c.source.Label != "" {
		return c.label(args, engine.StringValue(""))
	}
	compute, ok := arithmetic[call.FunctionName()]
	if !ok || len(args) != 2 {
		return nil, 0
	}
	left, kind := c.operand(args[0])
	right, other := c.operand(args[1])
	if left == nil || right == nil || kind != engine.Int || other != engine.Int {
		return nil, 0
	}
	return func(f F) engine.Value {
		a, b := left(f), right(f)
		if a.Missing() || b.Missing() {
			return engine.Value{}
		}
		n, ok := compute(a.Int(), b.Int())
		if !ok {
			return engine.Value{}
		}
		return engine.IntValue(n)
	}, engine.Int
}

// labels is the variable that maps words to words, if the expression is that.
func (c *nativeCompiler[F]) labels(e celast.Expr) func(F) map[string]string {
	name := c.name(e)
	if name == "" || c.source.Labels == nil {
		return nil
	}
	return c.source.Labels(name)
}

// label reads one of the labels; absent is its value where it is not there.
func (c *nativeCompiler[F]) label(args []celast.Expr, absent engine.Value) (Operand[F], engine.Kind) {
	if len(args) != 2 {
		return nil, 0
	}
	labels := c.labels(args[0])
	key, ok := StringLiteral(args[1])
	if labels == nil || !ok {
		return nil, 0
	}
	return func(f F) engine.Value {
		if value, has := labels(f)[key]; has {
			return engine.StringValue(value)
		}
		return absent
	}, engine.String
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
