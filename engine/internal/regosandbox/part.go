// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
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
// from. Told as well is what was left out, in no order.
func (m *Module) Part(files map[string][]byte, entrypoint string, unread ...string) (*Module, []LeftOut, error) {
	part := &Module{spec: m.spec, compiler: m.compiler}
	part.spec.Entrypoints = slices.DeleteFunc(slices.Clone(m.spec.Entrypoints), func(e Entrypoint) bool { return e.Name != entrypoint })
	gone := map[place]bool{}
	var left []LeftOut
	for _, rule := range rulesNamed(m.spec.Package, entrypoint, m.compiler.Modules) {
		if l := m.leftOut(rule, unread); l != nil {
			gone[placeOf(rule)] = true
			left = append(left, *l)
		}
	}
	if len(gone) > 0 {
		modules, found := parse(m.spec, files, false)
		if err := found.Err(); err != nil {
			return nil, left, err
		}
		for _, rule := range rulesNamed(m.spec.Package, entrypoint, modules) {
			if gone[placeOf(rule)] {
				neverHolds(rule)
			}
		}
		part.compiler = newCompiler(m.spec, ofPolicies())
		part.compiler.Compile(modules)
		if part.compiler.Failed() {
			return nil, left, fmt.Errorf("compile a part of %s: %w", m.spec.Package, part.compiler.Errors)
		}
	}
	query, err := part.compiler.QueryCompiler().Compile(part.spec.query())
	if err != nil {
		return nil, left, fmt.Errorf("compile a part of %s: %w", m.spec.Package, err)
	}
	part.query = query
	return part, left, nil
}

// neverHolds begins the bodies of a rule that is not compiled yet with a condition that is false.
func neverHolds(rule *ast.Rule) {
	for ; rule != nil; rule = rule.Else {
		no := ast.NewExpr(ast.BooleanTerm(false).SetLocation(rule.Location)).SetLocation(rule.Location)
		rule.Body = ast.NewBody(append([]*ast.Expr{no}, rule.Body...)...)
	}
}

// LeftOut is a rule that a Part is without.
type LeftOut struct {
	// File, Line and Column are where the rule is, or what keeps from knowing what it reads.
	File         string
	Line, Column int
	// Reads are the parts of the input for which it is left out, sorted. There are none where it may read them or not: it hands the whole
	// input on.
	Reads []string
}

// leftOut is nil for a rule that reads none of some parts of the input, by itself or by one that it uses.
func (m *Module) leftOut(rule *ast.Rule, parts []string) *LeftOut {
	at, reads := rule.Loc(), map[string]bool{}
	var whole *ast.Location
	m.reads(rule, func(path []string, at *ast.Location) {
		switch {
		case len(path) == 0:
			whole = cmp.Or(whole, at)
		case slices.Contains(parts, path[0]):
			reads[path[0]] = true
		}
	})
	switch {
	case len(reads) > 0:
	case whole != nil:
		at = whole
	default:
		return nil
	}
	return &LeftOut{File: at.File, Line: at.Row, Column: at.Col, Reads: slices.Sorted(maps.Keys(reads))}
}
