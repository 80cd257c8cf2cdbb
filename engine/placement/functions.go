// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"sync"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/metalaw/metalaw/engine/internal/celrule"
)

// Function is something that a condition may use.
type Function struct {
	// Use is an example, and Doc says what it yields.
	Use, Doc string

	names []string // in CEL
}

// labelFunction reads a label, and is empty where there is none.
const labelFunction = "label"

// Functions lists everything that a condition may use. None of them makes a text much longer than it is, looks at many
// values or knows the time, so that what a condition costs is bounded by its length.
func Functions() []Function {
	return []Function{
		{Use: "`a && b`, `a || b`, `!a`", Doc: "And, or, not. A side that decides outweighs an error on the other.",
			names: []string{operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot}},
		{Use: "`a == b`, `a != b`", Doc: "Equal, not equal; both sides have the same type.", names: []string{operators.Equals, operators.NotEquals}},
		{Use: "`a < b`, `a <= b`, `a > b`, `a >= b`", Doc: "Order of numbers and of texts.",
			names: []string{operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals}},
		{Use: "`a + b`, `a - b`, `a * b`, `a / b`, `a % b`, `-a`", Doc: "Whole numbers; a division by 0 is an error. `+` joins texts.",
			names: []string{operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate}},
		{Use: "`a in [\"x\", \"y\"]`, `\"key\" in server.labels`", Doc: "One of several values; whether there is a label.",
			names: []string{operators.In}},
		{Use: "`label(\"key\")`", Doc: "The value of a label; empty where the server does not have it. Never an error.",
			names: []string{labelFunction}},
		{Use: "`server.labels[\"key\"]`", Doc: "The value of a label; an error where the server does not have it.", names: []string{operators.Index}},
		{Use: "`a.startsWith(\"x\")`, `a.endsWith(\"x\")`, `a.contains(\"x\")`", Doc: "Parts of a text; upper and lower case differ.",
			names: []string{overloads.StartsWith, overloads.EndsWith, overloads.Contains}},
		{Use: "`size(a)`", Doc: "Length of a text in characters, or the number of labels.", names: []string{overloads.Size}},
		{Use: "`a ? b : c`", Doc: "`b` where `a` is true, else `c`. The value then needs quotes in YAML.", names: []string{operators.Conditional}},
	}
}

// environment declares the facts and functions, and nothing else.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	subset := env.NewLibrarySubset().SetDisableMacros(true)
	for _, f := range Functions() {
		for _, name := range f.names {
			if name != labelFunction {
				subset.AddIncludedFunctions(env.NewFunction(name))
			}
		}
	}
	options := []cel.EnvOption{cel.StdLib(cel.StdLibSubset(subset))}
	options = append(options, celrule.Limits()...)
	options = append(options,
		cel.ASTValidators(cel.ValidateHomogeneousAggregateLiterals()),
		cel.Macros(cel.GlobalMacro(labelFunction, 1, expandLabel)),
		cel.Function(labelFunction, cel.Overload("label_map_string",
			[]*cel.Type{cel.MapType(cel.StringType, cel.StringType), cel.StringType}, cel.StringType, cel.BinaryBinding(labelOf))),
	)
	for _, f := range Facts() {
		options = append(options, cel.Variable(f.Name, celTypes[f.kind]))
	}
	return cel.NewCustomEnv(options...)
})

// expandLabel turns label("a") into label(server.labels, "a").
func expandLabel(mef cel.MacroExprFactory, _ celast.Expr, args []celast.Expr) (celast.Expr, *cel.Error) {
	if args[0].Kind() != celast.LiteralKind {
		return nil, mef.NewError(args[0].ID(), "label() takes one key in quotes")
	}
	return mef.NewCall(labelFunction, mef.NewSelect(mef.NewIdent(group), "labels"), args[0]), nil
}

func labelOf(labels, key ref.Val) ref.Val {
	m, ok := labels.(traits.Mapper)
	if !ok {
		return types.MaybeNoSuchOverloadErr(labels)
	}
	if value, found := m.Find(key); found {
		return value
	}
	return types.String("")
}
