// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/metalaw/metalaw/engine/diag"
)

// CodePattern: a pattern that is written out cannot be read.
const CodePattern = "rego-pattern"

// matchers are the functions whose first operand is a pattern, with further operands that any pattern takes, and what to do about one that
// cannot be read.
var matchers = map[string]struct {
	others []*ast.Term
	hint   string
}{
	ast.RegexMatch.Name: {[]*ast.Term{ast.StringTerm("")},
		`correct it, or write a backslash before a bracket, a star or the like that stands for itself: regex.match("^a\\(b", ...)`},
	ast.GlobMatch.Name: {[]*ast.Term{ast.NullTerm(), ast.StringTerm("")},
		`correct it, or write a backslash before a bracket, a star or the like that stands for itself: glob.match("a\\[*", ...)`},
}

// checkPatterns finds patterns that are written out, in a call or under a name, and with which every evaluation that comes to them fails.
func checkPatterns(compiler *ast.Compiler) diag.List {
	var found diag.List
	for _, file := range slices.Sorted(maps.Keys(compiler.Modules)) {
		for _, rule := range compiler.Modules[file].Rules {
			given := constantsOf(rule)
			ast.WalkExprs(rule, func(call *ast.Expr) bool {
				if d := brokenPattern(compiler, given, call); d != nil {
					found = append(found, *d)
				}
				return false
			})
		}
	}
	return found
}

// brokenPattern is the finding about a call whose pattern cannot be read; nil for any other expression.
func brokenPattern(compiler *ast.Compiler, given map[ast.Var]*ast.Term, call *ast.Expr) *diag.Diagnostic {
	if !call.IsCall() {
		return nil
	}
	name := call.Operator().String()
	matcher, is := matchers[name]
	if !is {
		return nil
	}
	pattern := writtenOut(compiler, given, call.Operand(0))
	if pattern == nil {
		return nil
	}
	why := unreadable(name, append([]*ast.Term{pattern}, matcher.others...))
	if why == "" {
		return nil
	}
	at := cmp.Or(pattern.Location, call.Location)
	return &diag.Diagnostic{Severity: diag.Error, Code: CodePattern, File: at.File, Line: at.Row, Column: at.Col,
		Rule: ruleAt(compiler.Modules[at.File], at.Row), Hint: matcher.hint,
		Message: fmt.Sprintf("%s cannot read the pattern %s: %s", name, pattern, why)}
}

// constantsOf are the variables of a rule that are set to a text or to another rule, as the compiler has renamed them.
func constantsOf(rule *ast.Rule) map[ast.Var]*ast.Term {
	given := map[ast.Var]*ast.Term{}
	ast.WalkExprs(rule, func(e *ast.Expr) bool {
		if e.IsEquality() || e.IsAssignment() {
			if name, is := e.Operand(0).Value.(ast.Var); is && given[name] == nil {
				given[name] = e.Operand(1)
			}
		}
		return false
	})
	return given
}

// writtenOut is the text that an operand always is; nil where it depends on anything.
func writtenOut(compiler *ast.Compiler, given map[ast.Var]*ast.Term, operand *ast.Term) *ast.Term {
	if name, is := operand.Value.(ast.Var); is && given[name] != nil {
		operand = given[name]
	}
	switch v := operand.Value.(type) {
	case ast.String:
		return operand
	case ast.Ref:
		rules := compiler.GetRulesExact(v)
		if len(rules) != 1 || rules[0].Default || rules[0].Else != nil || rules[0].Head.Value == nil {
			return nil
		}
		if _, is := rules[0].Head.Value.Value.(ast.String); is {
			return rules[0].Head.Value
		}
	}
	return nil
}

// unreadable is why a function cannot read its pattern; empty where it can. One that is too large is told where it is evaluated.
func unreadable(function string, operands []*ast.Term) string {
	err := topdown.GetBuiltin(function)(topdown.BuiltinContext{Context: context.Background()}, operands, func(*ast.Term) error { return nil })
	failed, is := errors.AsType[*topdown.Error](err)
	if _, bound := errors.AsType[*BoundError](err); bound || !is {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(failed.Message, function+": "), "error parsing regexp: ")
}
