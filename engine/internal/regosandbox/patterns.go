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
// It finds those alone of which that is sure. The modules are those that the compiler was given.
func checkPatterns(compiler *ast.Compiler, modules map[string]*ast.Module) diag.List {
	p := patterns{compiler: compiler, assigned: map[spot]bool{}}
	for _, module := range modules {
		p.assignedIn(module)
	}
	for _, module := range compiler.Modules {
		p.replacedIn(module)
	}
	var found diag.List
	for _, file := range slices.Sorted(maps.Keys(compiler.Modules)) {
		for _, rule := range compiler.Modules[file].Rules {
			given := p.constantsOf(rule)
			ast.WalkExprs(rule, func(call *ast.Expr) bool {
				if d := p.broken(given, call); d != nil {
					found = append(found, *d)
				}
				return false
			})
		}
	}
	return found
}

// patterns is what tells those that are written out from others.
type patterns struct {
	compiler *ast.Compiler
	// assigned are the places of the texts that := gives a name. The compiler makes one of that and of ==, which only asks.
	assigned map[spot]bool
	// replaced are the rules and functions in whose place another stands somewhere, under with.
	replaced []ast.Ref
}

// spot is where a term is written.
type spot struct {
	file        string
	row, column int
}

func spotOf(t *ast.Term) spot {
	if t.Location == nil {
		return spot{}
	}
	return spot{t.Location.File, t.Location.Row, t.Location.Col}
}

func (p *patterns) assignedIn(module *ast.Module) {
	ast.WalkExprs(module, func(e *ast.Expr) bool {
		if e.IsAssignment() {
			_, isName := e.Operand(0).Value.(ast.Var)
			_, isText := e.Operand(1).Value.(ast.String)
			if isName && isText && e.Operand(1).Location != nil {
				p.assigned[spotOf(e.Operand(1))] = true
			}
		}
		return false
	})
}

func (p *patterns) replacedIn(module *ast.Module) {
	ast.WalkExprs(module, func(e *ast.Expr) bool {
		for _, with := range e.With {
			if ref, is := with.Target.Value.(ast.Ref); is {
				p.replaced = append(p.replaced, ref)
			}
		}
		return false
	})
}

// isReplaced says that something else may stand in the place of a rule or function.
func (p *patterns) isReplaced(ref ast.Ref) bool {
	return slices.ContainsFunc(p.replaced, func(other ast.Ref) bool { return ref.HasPrefix(other) || other.HasPrefix(ref) })
}

// broken is the finding about a call whose pattern cannot be read; nil for any other expression.
func (p *patterns) broken(given map[ast.Var]*ast.Term, call *ast.Expr) *diag.Diagnostic {
	if !call.IsCall() {
		return nil
	}
	name := call.Operator().String()
	matcher, is := matchers[name]
	if !is || p.isReplaced(call.Operator()) {
		return nil
	}
	pattern := p.writtenOut(given, call.Operand(0))
	if pattern == nil {
		return nil
	}
	why := unreadable(name, append([]*ast.Term{pattern}, matcher.others...))
	if why == "" {
		return nil
	}
	at := cmp.Or(pattern.Location, call.Location)
	return &diag.Diagnostic{Severity: diag.Error, Code: CodePattern, File: at.File, Line: at.Row, Column: at.Col,
		Rule: ruleAt(p.compiler.Modules[at.File], at.Row), Hint: matcher.hint,
		Message: fmt.Sprintf("%s cannot read the pattern %s: %s", name, pattern, why)}
}

// constantsOf are the variables of a rule, as the compiler has renamed them, that := sets to a text, and those that the compiler itself
// puts in the place of another rule.
func (p *patterns) constantsOf(rule *ast.Rule) map[ast.Var]*ast.Term {
	given := map[ast.Var]*ast.Term{}
	ast.WalkExprs(rule, func(e *ast.Expr) bool {
		if !e.IsEquality() {
			return false
		}
		name, isName := e.Operand(0).Value.(ast.Var)
		_, isRef := e.Operand(1).Value.(ast.Ref)
		if isName && (isRef && e.Generated || p.assigned[spotOf(e.Operand(1))]) {
			given[name] = e.Operand(1)
		}
		return false
	})
	return given
}

// writtenOut is the text that an operand always is; nil where it depends on anything.
func (p *patterns) writtenOut(given map[ast.Var]*ast.Term, operand *ast.Term) *ast.Term {
	if name, is := operand.Value.(ast.Var); is && given[name] != nil {
		operand = given[name]
	}
	switch v := operand.Value.(type) {
	case ast.String:
		return operand
	case ast.Ref:
		if rules := p.compiler.GetRulesExact(v); len(rules) == 1 && !p.isReplaced(v) {
			return textOf(rules[0])
		}
	}
	return nil
}

// textOf is the text that a rule is without any condition; nil for any other rule.
func textOf(rule *ast.Rule) *ast.Term {
	unconditional := len(rule.Body) == 1 && rule.Body[0].Equal(ast.NewExpr(ast.BooleanTerm(true)))
	if !unconditional || rule.Default || rule.Else != nil || rule.Head.Value == nil || len(rule.Head.Args) > 0 {
		return nil
	}
	if _, is := rule.Head.Value.Value.(ast.String); !is {
		return nil
	}
	return rule.Head.Value
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
