// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/celrule"
)

// maxCost bounds what one expression may cost in CEL's units, on the longest facts. Those of the shipped bundles stay below 50.
const maxCost = 1000

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
	options := append(celrule.Limits(), celrule.Validators(),
		cel.Macros(cel.GlobalMacro("marked", 1, expandMarked)),
		ext.Strings(), ext.Math(), ext.Sets())
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
func expandMarked(mef cel.MacroExprFactory, _ celast.Expr, args []celast.Expr) (celast.Expr, *cel.Error) {
	if args[0].Kind() != celast.LiteralKind {
		return nil, mef.NewError(args[0].ID(), "marked() takes one mark in quotes")
	}
	group, field := splitFact(engine.FactMarks)
	return mef.NewCall(operators.In, args[0], mef.NewSelect(mef.NewIdent(group), field)), nil
}

func splitFact(name string) (group, field string) {
	group, field, _ = strings.Cut(name, ".")
	return group, field
}

// activation gives CEL the facts of one decision.
type activation struct {
	vocabulary *engine.Vocabulary
	facts      engine.Facts
	// answers are those of safety rules so far, by the slots of their expressions; nil where they are not kept.
	answers []celrule.Truth
}

// holds evaluates an expression of the safety rules. Many effects share a rule: one decision asks each once.
func (a *activation) holds(of *Expression) (bool, error) {
	if of.slot == 0 || of.slot >= len(a.answers) {
		return of.evaluate(a)
	}
	if known := a.answers[of.slot]; known != celrule.Unknown {
		return known == celrule.True, nil
	}
	value, err := of.evaluate(a)
	if err == nil {
		a.answers[of.slot] = celrule.TruthOf(value)
	}
	return value, err
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

// namesOf says how an expression's names are read from facts without CEL.
func namesOf(v *engine.Vocabulary) celrule.Source[engine.Facts] {
	return celrule.Source[engine.Facts]{Fact: func(name string) celrule.Operand[engine.Facts] {
		i, ok := v.Index(name)
		if !ok {
			return celrule.Operand[engine.Facts]{}
		}
		return operand(i, v.Facts[i].Kind)
	}}
}

// operand reads a fact; CEL knows neither enums nor ages.
func operand(i int, kind engine.Kind) celrule.Operand[engine.Facts] {
	switch kind {
	case engine.Bool:
		return celrule.Operand[engine.Facts]{Kind: kind, Bool: func(f engine.Facts) (bool, bool) {
			v := f.Fact(i)
			return v.Bool(), !v.Missing()
		}}
	case engine.Int:
		return celrule.Operand[engine.Facts]{Kind: kind, Number: func(f engine.Facts) (int64, bool) {
			v := f.Fact(i)
			return v.Int(), !v.Missing()
		}}
	case engine.Duration, engine.Age:
		return celrule.Operand[engine.Facts]{Kind: engine.Duration, Number: func(f engine.Facts) (int64, bool) {
			v := f.Fact(i)
			return int64(v.Duration()), !v.Missing()
		}}
	case engine.String, engine.Enum:
		return celrule.Operand[engine.Facts]{Kind: engine.String, Text: func(f engine.Facts) (string, bool) {
			v := f.Fact(i)
			return v.Text(), !v.Missing()
		}}
	case engine.Set:
		return celrule.Operand[engine.Facts]{Kind: kind, Words: func(f engine.Facts) ([]string, bool) {
			v := f.Fact(i)
			return v.Set(), !v.Missing()
		}}
	}
	return celrule.Operand[engine.Facts]{}
}

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
