// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/spelling"
)

// checkUse warns of rules that have no part in any answer: neither metalaw asks for them, nor a rule for which it does. So it
// shows that the name of an entry point is misspelt which a policy may leave out.
func checkUse(spec Spec, compiler *ast.Compiler) diag.List {
	asked := reach{compiler, map[string]bool{}, map[string]bool{}}
	for _, e := range spec.Entrypoints {
		asked.follow(ast.MustParseRef("data." + spec.Package + "." + e.Name))
	}
	var found diag.List
	for _, file := range slices.Sorted(maps.Keys(compiler.Modules)) {
		module := compiler.Modules[file]
		if packageName(module) != spec.Package {
			continue
		}
		told := map[string]bool{}
		for _, rule := range module.Rules {
			name := rule.Ref().GroundPrefix().String()
			if asked.rules[name] || told[name] {
				continue
			}
			told[name] = true
			short := strings.TrimPrefix(name, "data."+spec.Package+".")
			found = append(found, diag.Diagnostic{Severity: diag.Warning, Code: CodeUnusedRule, File: file, Line: rule.Loc().Row,
				Column: rule.Loc().Col, Rule: short, Message: "nothing asks for the rule " + short, Hint: useHint(spec, short)})
		}
	}
	return found
}

// reach is what a policy comes to from its entry points: the references that were followed, and the rules at them by name.
type reach struct {
	compiler *ast.Compiler
	followed map[string]bool
	rules    map[string]bool
}

func (r *reach) follow(ref ast.Ref) {
	if r.followed[ref.String()] {
		return
	}
	r.followed[ref.String()] = true
	for _, rule := range r.compiler.GetRules(ref) {
		r.rules[rule.Ref().GroundPrefix().String()] = true
		ast.WalkRefs(rule, func(to ast.Ref) bool {
			if to.HasPrefix(ast.DefaultRootRef) {
				r.follow(to.ConstantPrefix())
			}
			return false
		})
	}
}

func useHint(spec Spec, name string) string {
	var names []string
	for _, e := range spec.Entrypoints {
		names = append(names, e.Name)
	}
	hint := fmt.Sprintf("use it, or take it out; metalaw asks for %s", strings.Join(names, ", "))
	if near := spelling.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %s? Else %s", near, hint)
	}
	return hint
}
