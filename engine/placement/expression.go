// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/celrule"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/engine/spelling"
)

// expression is one condition.
type expression struct {
	source  string
	program cel.Program
	// native is the same condition without CEL; nil where it lies outside the fragment that is known there.
	native celrule.Native[*selection.Candidate]
}

// holds is the condition's value for a server.
func (e *expression) holds(c *selection.Candidate) celrule.Truth {
	if e.native != nil {
		return e.native(c)
	}
	t, _ := e.interpret(c)
	return t
}

// interpret evaluates by CEL, which also words what is wrong. There is an error only where the value is Failed.
func (e *expression) interpret(c *selection.Candidate) (celrule.Truth, error) {
	out, _, err := e.program.Eval(activation{c})
	if err != nil {
		return celrule.Failed, err
	}
	holds, ok := out.(types.Bool)
	if !ok {
		return celrule.Failed, fmt.Errorf("the value is %s, not a boolean", out.Type().TypeName())
	}
	return celrule.TruthOf(bool(holds)), nil
}

// shown is the condition as a message shows it.
func (e *expression) shown() string {
	text := strings.Join(strings.Fields(e.source), " ")
	if runes := []rune(text); len(runes) > maxShown {
		return string(runes[:maxShown-3]) + "..."
	}
	return text
}

const maxShown = 120

const referencePage = "docs/reference/placement.md"

var words = celrule.Words{
	Page:           referencePage,
	Comprehensions: "a condition looks at single facts, so that its cost is bounded",
	InsteadOf:      `ask for a label with "key" in server.labels, and compare its value with label("key")`,
	Shorter:        "say less, or use alternatives",
	Nearest:        nearest,
}

// nearest is the fact that somebody meant.
func nearest(name string) string {
	all := make([]string, 0, len(Facts()))
	for _, f := range Facts() {
		all = append(all, strings.TrimPrefix(f.Name, group+"."))
	}
	if near := spelling.Nearest(strings.TrimPrefix(name, group+"."), all); near != "" {
		return group + "." + near
	}
	return ""
}

// expression compiles the condition at a node; nil where there is none or where it is not usable, which has been recorded
// then. rule names where in the document it is.
func (p *parser) expression(node *yaml.Node, rule string) *expression {
	if node == nil {
		return nil
	}
	if node.Kind != yaml.ScalarNode {
		p.file.Errorf(node, "yaml-type", rule, "write a condition in CEL", "%s must be text", rule)
		return nil
	}
	if strings.TrimSpace(node.Value) == "" {
		p.file.Errorf(node, "cel-empty", rule, "write a CEL expression that yields true or false", "the condition is empty")
		return nil
	}
	checked, issues := p.env.Compile(node.Value)
	if issues != nil && issues.Err() != nil {
		words.Report(p.file, node, rule, issues.Errors())
		return nil
	}
	if !checked.OutputType().IsExactType(cel.BoolType) {
		p.file.Errorf(node, "cel-not-bool", rule, "compare it with something", "the expression yields %s, not a boolean", checked.OutputType())
		return nil
	}
	wordsFit := enumsFit(p.file, checked.NativeRep(), node, rule)
	cost, affordable := celrule.Affordable(p.env, p.file, checked, rule, node, maxCost)
	if !wordsFit || !affordable {
		return nil
	}
	program, err := p.env.Program(checked, cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		p.file.Errorf(node, "cel-program", rule, "write it more simply", "%v", err)
		return nil
	}
	e := &expression{source: node.Value, program: program, native: celrule.CompileNative(checked.NativeRep(), names())}
	if e.native == nil {
		cost *= slowly
	}
	p.cost += cost
	return e
}

// enumsFit reports comparisons of a fact with a word that it never has.
func enumsFit(file *yamlpos.File, ast *celast.AST, node *yaml.Node, rule string) bool {
	ok := true
	compare := func(factSide, wordSide celast.Expr) {
		reference := ast.ReferenceMap()[factSide.ID()]
		word, literal := celrule.StringLiteral(wordSide)
		if reference == nil || !literal {
			return
		}
		f := facts().byName[reference.Name]
		if f == nil || f.kind != engine.Enum || slices.Contains(f.Values, word) {
			return
		}
		ok = false
		at := ast.SourceInfo().GetStartLocation(wordSide.ID())
		file.ErrorIn(node, at.Line(), at.Column(), "cel-enum", rule, "it is one of "+strings.Join(f.Values, ", "),
			fmt.Sprintf("%s is never %q", f.Name, word))
	}
	celast.PreOrderVisit(ast.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind {
			return
		}
		call := e.AsCall()
		switch args := call.Args(); call.FunctionName() {
		case operators.Equals, operators.NotEquals:
			compare(args[0], args[1])
			compare(args[1], args[0])
		case operators.In:
			if args[1].Kind() == celast.ListKind {
				for _, element := range args[1].AsList().Elements() {
					compare(args[0], element)
				}
			}
		}
	}))
	return ok
}
