// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"

	"github.com/metalaw/metalaw/engine"
)

const (
	// maxExpression bounds the length of one expression in code points; the longest of the shipped bundles has 120.
	maxExpression = 1024
	maxRecursion  = 32
)

// celTypes says which CEL type a rule sees for each kind of fact.
var celTypes = map[engine.Kind]*cel.Type{
	engine.Bool:     cel.BoolType,
	engine.Int:      cel.IntType,
	engine.String:   cel.StringType,
	engine.Enum:     cel.StringType,
	engine.Duration: cel.DurationType,
	engine.Age:      cel.DurationType,
	engine.Set:      cel.ListType(cel.StringType),
}

// newEnv declares every fact as a variable of its own. All macros but marked() are left out: without comprehensions the
// cost of an expression is bounded by its length.
func newEnv(v *engine.Vocabulary) (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.ClearMacros(),
		cel.Macros(cel.GlobalMacro("marked", 1, expandMarked(v.MarksFact))),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ParserRecursionLimit(maxRecursion),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals(),
			cel.ValidateHomogeneousAggregateLiterals()),
		ext.Strings(), ext.Math(), ext.Sets(),
	}
	for _, f := range v.Facts {
		t, ok := celTypes[f.Kind]
		if !ok {
			return nil, fmt.Errorf("fact %s has unknown kind %s", f.Name, f.Kind)
		}
		options = append(options, cel.Variable(f.Name, t))
	}
	return cel.NewEnv(options...)
}

// expandMarked turns marked("Dirty") into "Dirty" in lifecycle.marks, so that no expression has to start with a quote,
// which YAML would take away.
func expandMarked(marksFact string) cel.MacroFactory {
	group, field := splitFact(marksFact)
	return func(mef cel.MacroExprFactory, _ celast.Expr, args []celast.Expr) (celast.Expr, *cel.Error) {
		if args[0].Kind() != celast.LiteralKind {
			return nil, mef.NewError(args[0].ID(), "marked() takes one mark in quotes")
		}
		return mef.NewCall(operators.In, args[0], mef.NewSelect(mef.NewIdent(group), field)), nil
	}
}

func splitFact(name string) (group, field string) {
	for i := range name {
		if name[i] == '.' {
			return name[:i], name[i+1:]
		}
	}
	return name, ""
}

// activation gives CEL the facts of one decision.
type activation struct {
	vocabulary *engine.Vocabulary
	facts      engine.Facts
}

// ResolveName implements cel.Activation. A fact that was not observed is not found, which CEL reports as an error.
func (a *activation) ResolveName(name string) (any, bool) {
	i, ok := a.vocabulary.Index(name)
	if !ok {
		return nil, false
	}
	value := celValue(a.facts.Fact(i))
	return value, value != nil
}

// Parent implements cel.Activation.
func (a *activation) Parent() cel.Activation { return nil }

func celValue(v engine.Value) ref.Val {
	switch v.Kind() {
	case engine.Bool:
		return types.Bool(v.Bool())
	case engine.Int:
		return types.Int(v.Int())
	case engine.String, engine.Enum:
		return types.String(v.Text())
	case engine.Duration, engine.Age:
		return types.Duration{Duration: v.Duration()}
	case engine.Set:
		return types.NewStringList(types.DefaultTypeAdapter, v.Set())
	default:
		return nil
	}
}

// durationLiteral returns the length in duration("5m"), if the expression is that.
func durationLiteral(e celast.Expr) (time.Duration, bool) {
	if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != "duration" || len(e.AsCall().Args()) != 1 {
		return 0, false
	}
	text, ok := stringLiteral(e.AsCall().Args()[0])
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

func stringLiteral(e celast.Expr) (string, bool) {
	if e.Kind() != celast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().Value().(string)
	return text, ok
}
