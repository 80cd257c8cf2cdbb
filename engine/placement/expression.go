// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/celrule"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/engine/spelling"
)

// expression is one condition.
type expression struct {
	*celrule.Rule[*selection.Candidate]
}

// holds is the condition's value for a server.
func (e *expression) holds(c *selection.Candidate) celrule.Truth {
	if e.Native != nil {
		return e.Native(c)
	}
	t, _ := e.interpret(c)
	return t
}

// interpret evaluates by CEL, which also words what is wrong. There is an error only where the value is Failed.
func (e *expression) interpret(c *selection.Candidate) (celrule.Truth, error) {
	holds, err := e.Interpret(activation{c})
	if err != nil {
		return celrule.Failed, err
	}
	return celrule.TruthOf(holds), nil
}

// shown is the condition as a message shows it.
func (e *expression) shown() string {
	text := strings.Join(strings.Fields(e.Source), " ")
	if runes := []rune(text); len(runes) > maxShown {
		return string(runes[:maxShown-3]) + "..."
	}
	return text
}

const maxShown = 120

const referencePage = "docs/reference/placement.md"

var words = celrule.Words{
	What:           "condition",
	Page:           referencePage,
	Comprehensions: "a condition looks at single facts, so that its cost is bounded",
	InsteadOf:      `ask for a label with "key" in server.labels, and compare its value with label("key")`,
	Shorter:        "say less, or use alternatives",
	Nearest:        nearest,
}

// nearest is the fact that the author meant.
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
	rules := celrule.Compiler[*selection.Candidate]{File: p.file, Env: p.env, Words: words, Most: maxCost, Source: names(), Inspect: p.enumsFit}
	e := rules.Compile(rule, node)
	if e == nil {
		return nil
	}
	if e.Native == nil {
		e.Cost *= slowly
	}
	p.cost += e.Cost
	return &expression{e}
}

// enumsFit reports comparisons of a fact with a word that it never has.
func (p *parser) enumsFit(rule string, node *yaml.Node, ast *celast.AST) bool {
	ok := true
	compare := func(factSide, wordSide celast.Expr) {
		word, literal := celrule.StringLiteral(wordSide)
		f := facts().byName[celrule.Name(ast, factSide)]
		if !literal || f == nil || f.kind != engine.Enum || slices.Contains(f.Values, word) {
			return
		}
		ok = false
		at := ast.SourceInfo().GetStartLocation(wordSide.ID())
		p.file.ErrorIn(node, at.Line(), at.Column(), "cel-enum", rule, "it is one of "+strings.Join(f.Values, ", "),
			fmt.Sprintf("%s is never %q", f.Name, word))
	}
	celast.PreOrderVisit(ast.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() == celast.CallKind {
			celrule.EachEquality(e.AsCall(), compare)
		}
	}))
	return ok
}
