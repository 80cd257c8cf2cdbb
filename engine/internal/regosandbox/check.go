// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/metalaw/metalaw/engine/diag"
)

// checkReferences finds references to rules that no file defines. Rego takes them for documents that may come later, so
// that a misspelt import would quietly be undefined for ever; here no such documents exist.
func checkReferences(compiler *ast.Compiler) diag.List {
	var found diag.List
	seen := map[diag.Diagnostic]bool{}
	for _, file := range slices.Sorted(maps.Keys(compiler.Modules)) {
		module := compiler.Modules[file]
		for _, rule := range module.Rules {
			ast.WalkRefs(rule, func(ref ast.Ref) bool {
				prefix := ref.ConstantPrefix()
				if !ref.HasPrefix(ast.DefaultRootRef) || len(compiler.GetRules(prefix)) > 0 {
					return false
				}
				d := diag.Diagnostic{Severity: diag.Error, Code: CodeUnknownData, File: file, Rule: ruleAt(module, rule.Loc().Row),
					Line: rule.Loc().Row, Column: rule.Loc().Col,
					Message: fmt.Sprintf("no rule defines %s", prefix), Hint: "a policy reads only its input and the rules of its bundle"}
				if loc := ref[0].Location; loc != nil && loc.Row > 0 {
					d.Line, d.Column = loc.Row, loc.Col
				}
				if !seen[d] {
					seen[d] = true
					found = append(found, d)
				}
				return false
			})
		}
	}
	if len(found) > maxFindings {
		found = append(found[:maxFindings], andMore(found[maxFindings-1]))
	}
	return found
}

// checkEntrypoints looks at the rules as they were written, since the compiler rewrites them.
func checkEntrypoints(spec Spec, compiler *ast.Compiler, modules map[string]*ast.Module) diag.List {
	var found diag.List
	for _, e := range spec.Entrypoints {
		rules := rulesNamed(spec.Package, e.Name, modules)
		if len(rules) == 0 && e.Required {
			found = append(found, diag.Diagnostic{Severity: diag.Error, Code: CodeEntrypoint, File: mainFile(spec, modules), Rule: e.Name,
				Message: fmt.Sprintf("the package %s has no rule %s", spec.Package, e.Name), Hint: "add it: " + example(e)})
		}
		for _, rule := range rules {
			tpe := compiler.TypeEnv.GetByRef(ast.MustParseRef("data." + spec.Package + "." + e.Name))
			if message := misfit(e, rule, tpe); message != "" {
				found = append(found, diag.Diagnostic{Severity: diag.Error, Code: CodeEntrypoint, File: rule.Loc().File, Line: rule.Loc().Row,
					Column: rule.Loc().Col, Rule: e.Name, Message: message, Hint: "write it like " + example(e)})
			}
		}
	}
	return found
}

func rulesNamed(pkg, name string, modules map[string]*ast.Module) []*ast.Rule {
	var rules []*ast.Rule
	for _, file := range slices.Sorted(maps.Keys(modules)) {
		if packageName(modules[file]) != pkg {
			continue
		}
		for _, rule := range modules[file].Rules {
			if string(rule.Head.Ref()[0].Value.(ast.Var)) == name {
				rules = append(rules, rule)
			}
		}
	}
	return rules
}

// mainFile is the file to which a missing rule belongs.
func mainFile(spec Spec, modules map[string]*ast.Module) string {
	for _, file := range slices.Sorted(maps.Keys(modules)) {
		if packageName(modules[file]) == spec.Package {
			return file
		}
	}
	return spec.Package[strings.LastIndex(spec.Package, ".")+1:] + ".rego"
}

func example(e Entrypoint) string {
	switch e.Form {
	case Boolean:
		return e.Name + " if { input... }"
	case Number:
		return e.Name + " := 10"
	default:
		return e.Name + ` contains {"code": "word", "message": "sentence"} if { input... }`
	}
}

// misfit says why a rule is not of the form that the entry point asks for. Types that only the evaluation can tell are
// checked there.
func misfit(e Entrypoint, rule *ast.Rule, tpe types.Type) string {
	isSet := rule.Head.RuleKind() == ast.MultiValue
	switch {
	case len(rule.Head.Args) > 0:
		return e.Name + " is a function, and metalaw asks for a value"
	case len(rule.Head.Ref()) > 1 && !isSet, rule.Head.Key != nil && !isSet:
		return e.Name + " is an object, and metalaw asks for something else"
	case isSet != (e.Form == Messages):
		return fmt.Sprintf("%s has another form than metalaw asks for", e.Name)
	case e.Form == Boolean && !couldBe(tpe, types.B):
		return e.Name + " is not true or false"
	case e.Form == Number && !couldBe(tpe, types.N):
		return e.Name + " is not a number"
	case e.Form == Messages:
		return messageMisfit(e, rule)
	}
	return ""
}

// messageMisfit looks at the object that a rule adds, where it is spelt out in the rule's head.
func messageMisfit(e Entrypoint, rule *ast.Rule) string {
	if rule.Head.Key == nil {
		return ""
	}
	var object ast.Object
	switch key := rule.Head.Key.Value.(type) {
	case ast.Object:
		object = key
	case ast.String, ast.Number, ast.Boolean, ast.Null, *ast.Array, ast.Set:
		return e.Name + " contains something else than an object with code and message"
	default:
		return ""
	}
	for _, key := range []string{"code", "message"} {
		if object.Get(ast.StringTerm(key)) == nil {
			return fmt.Sprintf("%s contains an object without %s", e.Name, key)
		}
	}
	for _, key := range object.Keys() {
		if name, ok := key.Value.(ast.String); ok && name != "code" && name != "message" && !slices.Contains(e.Fields, string(name)) {
			return fmt.Sprintf("%s contains an object with the unknown key %s", e.Name, key)
		}
	}
	return ""
}

func couldBe(tpe, want types.Type) bool {
	if alternatives, ok := tpe.(types.Any); ok {
		return len(alternatives) == 0 || slices.ContainsFunc(alternatives, func(t types.Type) bool { return couldBe(t, want) })
	}
	return tpe == nil || types.Compare(tpe, want) == 0
}
