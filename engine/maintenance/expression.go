// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"errors"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/internal/celrule"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
	"github.com/metalaw/metalaw/engine/spelling"
)

// maxCost bounds what one expression may cost in CEL's units on the longest facts.
const maxCost = 1000

// Expression is a condition in CEL.
type Expression struct {
	rule *celrule.Rule[*Facts]
}

// Holds is the value of the expression. An error is not false: the caller says it, and does not go on.
func (e *Expression) Holds(f *Facts) (bool, error) {
	if e.rule.Native != nil {
		if truth := e.rule.Native(f); truth == celrule.True || truth == celrule.False {
			return truth == celrule.True, nil
		}
	}
	return e.rule.Interpret(activation{f})
}

// String is the expression in one line.
func (e *Expression) String() string { return strings.Join(strings.Fields(e.rule.Source), " ") }

var environment = sync.OnceValues(func() (*cel.Env, error) {
	options := append(celrule.Limits(), celrule.Validators())
	for i := range variables {
		options = append(options, cel.Variable(variables[i].Name, celTypes[variables[i].Type]))
	}
	return cel.NewEnv(options...)
})

var words = celrule.Words{
	What:           "condition",
	Page:           "docs/maintenance.md",
	Comprehensions: "a condition looks at single facts, so that its cost is bounded",
	InsteadOf:      `ask for a label with "key" in server.labels, and compare its value with server.labels["key"]`,
	Shorter:        "say less, or use several checks",
	Nearest: func(name string) string {
		names := make([]string, len(variables))
		for i := range variables {
			names[i] = variables[i].Name
		}
		return spelling.Nearest(name, names)
	},
}

// Compile compiles the condition at a node; nil where it is not usable, which has been recorded in the file then.
func Compile(file *yamlpos.File, rule string, node *yaml.Node) *Expression {
	if node.Kind != yaml.ScalarNode {
		file.Errorf(node, "yaml-type", rule, "write a condition in CEL", "%s must be text", rule)
		return nil
	}
	env, err := environment()
	if err != nil { // a mistake in the list of variables, which the tests of this package find
		file.Errorf(node, "cel-program", rule, "report it", "%v", err)
		return nil
	}
	compiler := celrule.Compiler[*Facts]{File: file, Env: env, Words: words, Most: maxCost, Source: source,
		Inspect: func(string, *yaml.Node, *celast.AST) bool { return true }}
	if compiled := compiler.Compile(rule, node); compiled != nil {
		return &Expression{compiled}
	}
	return nil
}

// Condition compiles a condition that stands in no bundle.
func Condition(text string) (*Expression, error) {
	file := &yamlpos.File{}
	if e := Compile(file, "", &yaml.Node{Kind: yaml.ScalarNode, Value: text, Line: 1, Column: 1}); e != nil {
		return e, nil
	}
	return nil, errors.New(file.Found[0].Message)
}
