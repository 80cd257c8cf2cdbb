// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/util"
)

// place is where a rule is written. Several may begin on one line, and one with several bodies is several rules.
type place struct {
	file, name  string
	row, column int
}

func placeOf(rule *ast.Rule) place {
	loc := rule.Loc()
	return place{file: loc.File, name: string(rule.Head.Ref()[0].Value.(ast.Var)), row: loc.Row, column: loc.Col}
}

// Part asks for one entry point alone, without those of its rules that read one of some parts of the input, by themselves or by a
// rule that they use. These never hold, but they are there: what else uses the entry point compiles as it does in the whole, and with
// the same types. Other rules are evaluated only where the entry point uses them. The files are those that the module was compiled
// from.
func (m *Module) Part(files map[string][]byte, entrypoint string, unread ...string) (*Module, error) {
	part := &Module{spec: m.spec, compiler: m.compiler}
	part.spec.Entrypoints = slices.DeleteFunc(slices.Clone(m.spec.Entrypoints), func(e Entrypoint) bool { return e.Name != entrypoint })
	gone := map[place]bool{}
	for _, rule := range rulesNamed(m.spec.Package, entrypoint, m.compiler.Modules) {
		if m.readsAny(rule, unread) {
			gone[placeOf(rule)] = true
		}
	}
	if len(gone) > 0 {
		modules, found := parse(m.spec, files, false)
		if err := found.Err(); err != nil {
			return nil, err
		}
		for _, rule := range rulesNamed(m.spec.Package, entrypoint, modules) {
			if gone[placeOf(rule)] {
				neverHolds(rule)
			}
		}
		part.compiler = newCompiler(m.spec, false)
		part.compiler.Compile(modules)
		if part.compiler.Failed() {
			return nil, fmt.Errorf("compile a part of %s: %w", m.spec.Package, part.compiler.Errors)
		}
	}
	query, err := part.compiler.QueryCompiler().Compile(part.spec.query())
	if err != nil {
		return nil, fmt.Errorf("compile a part of %s: %w", m.spec.Package, err)
	}
	part.query = query
	return part, nil
}

// neverHolds begins the bodies of a rule that is not compiled yet with a condition that is false.
func neverHolds(rule *ast.Rule) {
	for ; rule != nil; rule = rule.Else {
		no := ast.NewExpr(ast.BooleanTerm(false).SetLocation(rule.Location)).SetLocation(rule.Location)
		rule.Body = ast.NewBody(append([]*ast.Expr{no}, rule.Body...)...)
	}
}

// readsAny says that a rule or one that it uses reads one of some parts of the input, or the input as a whole.
func (m *Module) readsAny(rule *ast.Rule, parts []string) bool {
	seen := map[util.T]bool{}
	var visit func(node util.T) bool
	visit = func(node util.T) bool {
		if seen[node] {
			return false
		}
		seen[node] = true
		for _, path := range readsOf(node) {
			if len(path) == 0 || slices.Contains(parts, path[0]) {
				return true
			}
		}
		for next := range m.compiler.Graph.Dependencies(node) {
			if visit(next) {
				return true
			}
		}
		return false
	}
	return visit(rule)
}
