// SPDX-License-Identifier: Apache-2.0

package celrule

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// Compiler compiles the expressions of one document.
type Compiler[F any] struct {
	File  *yamlpos.File
	Env   *cel.Env
	Words Words
	// Most is what one expression may cost, in CEL's units.
	Most   uint64
	Source Source[F]
	// Inspect looks further into an expression, and reports what is wrong with it; false where something is.
	Inspect func(rule string, node *yaml.Node, checked *celast.AST) bool
}

// Rule is one compiled expression that yields a boolean.
type Rule[F any] struct {
	Source  string
	Checked *celast.AST
	// Cost is what it may cost at most.
	Cost uint64
	// Native is the same expression without CEL; nil where it lies outside the fragment that is known there.
	Native  Native[F]
	Program cel.Program
}

// Compile compiles the expression at a node; nil where it is not usable, which has been recorded then.
func (c *Compiler[F]) Compile(rule string, node *yaml.Node) *Rule[F] {
	if strings.TrimSpace(node.Value) == "" {
		c.File.Errorf(node, "cel-empty", rule, "write a CEL expression that yields true or false", "the %s is empty", c.Words.What)
		return nil
	}
	checked, issues := c.Env.Compile(node.Value)
	if issues != nil && issues.Err() != nil {
		c.Words.report(c.File, node, rule, issues.Errors())
		return nil
	}
	if !checked.OutputType().IsExactType(cel.BoolType) {
		c.File.Errorf(node, "cel-not-bool", rule, "compare it with something", "the expression yields %s, not a boolean", checked.OutputType())
		return nil
	}
	fits := c.Inspect(rule, node, checked.NativeRep())
	cost, affordable := affordable(c.Env, c.File, checked, rule, node, c.Most)
	if !fits || !affordable {
		return nil
	}
	program, err := c.Env.Program(checked, cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		c.File.Errorf(node, "cel-program", rule, "write it more simply", "%v", err)
		return nil
	}
	return &Rule[F]{node.Value, checked.NativeRep(), cost, CompileNative(checked.NativeRep(), c.Source), program}
}

// Interpret evaluates by CEL, which also words what is wrong.
func (r *Rule[F]) Interpret(in cel.Activation) (bool, error) {
	out, _, err := r.Program.Eval(in)
	if err != nil {
		return false, err
	}
	holds, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the value is %s, not a boolean", out.Type().TypeName())
	}
	return bool(holds), nil
}

// Name is the variable that an expression is; empty where it is none.
func Name(ast *celast.AST, e celast.Expr) string {
	if reference, ok := ast.ReferenceMap()[e.ID()]; ok {
		return reference.Name
	}
	return ""
}

// EachEquality calls do for the two sides of a call that asks whether they are equal, in both orders, and for a value with each
// element of a list that it is sought in.
func EachEquality(call celast.CallExpr, do func(one, other celast.Expr)) {
	switch args := call.Args(); call.FunctionName() {
	case operators.Equals, operators.NotEquals:
		do(args[0], args[1])
		do(args[1], args[0])
	case operators.In:
		if args[1].Kind() == celast.ListKind {
			for _, element := range args[1].AsList().Elements() {
				do(args[0], element)
			}
		}
	}
}
