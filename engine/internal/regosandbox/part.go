// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/util"
)

// Part is the policy without those rules of an entry point that read one of some parts of the input, by themselves or by a rule
// that they use. It is the module itself where there are none. The files are those that the module was compiled from. Rules of
// other names stay as they are.
func (m *Module) Part(files map[string][]byte, entrypoint string, unread ...string) (*Module, error) {
	gone := map[string]bool{}
	for _, rule := range rulesNamed(m.spec.Package, entrypoint, m.compiler.Modules) {
		if m.readsAny(rule, unread) {
			gone[rule.Location.String()] = true
		}
	}
	if len(gone) == 0 {
		return m, nil
	}
	modules, found := parse(m.spec, files, false)
	if err := found.Err(); err != nil {
		return nil, err
	}
	for _, module := range modules {
		module.Rules = slices.DeleteFunc(module.Rules, func(r *ast.Rule) bool { return gone[r.Location.String()] })
	}
	compiler := newCompiler(m.spec, false).WithStrict(false) // what only the others use may stay unused
	compiler.Compile(modules)
	if compiler.Failed() {
		return nil, fmt.Errorf("compile a part of %s: %w", m.spec.Package, compiler.Errors)
	}
	query, err := compiler.QueryCompiler().Compile(m.spec.query())
	if err != nil {
		return nil, fmt.Errorf("compile a part of %s: %w", m.spec.Package, err)
	}
	return &Module{spec: m.spec, compiler: compiler, query: query}, nil
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
