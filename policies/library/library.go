// SPDX-License-Identifier: Apache-2.0

// Package library holds the policies that are shipped for bundles to take over. Each is a folder with its Rego, the tests of it
// and policy.yaml, which says what it does and how it is used. What a bundle takes over becomes files of its own: nothing is
// read from here when it is in force.
package library

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"sigs.k8s.io/yaml"

	"github.com/metalaw/metalaw/engine/bundle"
)

//go:embed */*.rego */policy.yaml
var shipped embed.FS

// Policy is one policy of the library.
type Policy struct {
	// Name is that of its folder, its files and its package, there with underscores.
	Name string `json:"-"`
	// Summary is one sentence; Does says more.
	Summary string `json:"summary"`
	Does    string `json:"does"`
	// Score is what is added to the score of selection.rego; Selection and Admission are rules that are added to selection.rego
	// and admission.rego. Each is empty where the policy has none.
	Score     string `json:"score"`
	Selection string `json:"selection"`
	Admission string `json:"admission"`
	// Priority is the parameter that holds a priority which not every namespace may ask for, and Label the one with a label that does
	// as well; empty where there is none.
	Priority string `json:"priority"`
	Label    string `json:"label"`
	// Example is a claim that it concerns.
	Example string `json:"example"`
	// Parameters are what an author may set, in the order of the text.
	Parameters []Parameter `json:"-"`
	// Reads are the parts of the input that its rules read, sorted.
	Reads []string `json:"-"`
	// Files are those that it adds to a bundle.
	Files bundle.Files `json:"-"`

	// modules are its Files, parsed.
	modules map[string]*ast.Module
}

// Parameter is a rule of a policy that is a constant.
type Parameter struct {
	Name string
	// Default is its value, as Rego.
	Default string
	// Doc is the comment above it.
	Doc string
}

// Main is the name of its file with the rules.
func (p Policy) Main() string { return p.Name + ".rego" }

// Names lists the policies, sorted.
func Names() []string {
	entries, err := fs.ReadDir(shipped, ".")
	if err != nil {
		return nil // they are compiled in
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// Find returns a policy. It fails for a name that is not in the library.
func Find(name string) (Policy, error) {
	if !slices.Contains(Names(), name) {
		return Policy{}, fmt.Errorf("there is no policy %q in the library", name)
	}
	p := Policy{Name: name, Files: bundle.Files{}, modules: map[string]*ast.Module{}}
	entries, err := fs.ReadDir(shipped, name)
	if err != nil {
		return p, err
	}
	for _, e := range entries {
		data, err := fs.ReadFile(shipped, path.Join(name, e.Name()))
		if err != nil {
			return p, err
		}
		if e.Name() != "policy.yaml" {
			p.Files[e.Name()] = data
			if p.modules[e.Name()], err = parse(e.Name(), data); err != nil {
				return p, err
			}
			continue
		}
		if err := yaml.UnmarshalStrict(data, &p); err != nil {
			return p, fmt.Errorf("policy %s of the library: %w", name, err)
		}
	}
	p.Parameters = parametersOf(p.modules[p.Main()])
	p.Reads, err = p.reads()
	return p, err
}

// All returns every policy, by name.
func All() ([]Policy, error) {
	var all []Policy
	for _, name := range Names() {
		p, err := Find(name)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func parse(file string, text []byte) (*ast.Module, error) {
	return ast.ParseModuleWithOpts(file, string(text), ast.ParserOptions{RegoVersion: ast.RegoV1})
}

// parametersOf are the constants of a file, with the comments right above them.
func parametersOf(module *ast.Module) []Parameter {
	var all []Parameter
	for _, rule := range module.Rules {
		if !isConstant(rule) {
			continue
		}
		all = append(all, Parameter{Name: rule.Head.Name.String(), Default: rule.Head.Value.String(), Doc: commentAbove(module, rule.Loc().Row)})
	}
	return all
}

// commentAbove is the comment right above a line, in one.
func commentAbove(module *ast.Module, row int) string {
	var lines []string
	for _, c := range slices.Backward(module.Comments) {
		if c.Location.Row == row-1-len(lines) {
			lines = append(lines, strings.TrimSpace(string(c.Text)))
		}
	}
	slices.Reverse(lines)
	return strings.Join(lines, " ")
}

func isConstant(rule *ast.Rule) bool {
	return !rule.Default && rule.Else == nil && len(rule.Head.Args) == 0 && rule.Head.RuleKind() == ast.SingleValue &&
		rule.Head.Value != nil && ast.IsConstant(rule.Head.Value.Value) &&
		len(rule.Body) == 1 && rule.Body[0].Equal(ast.NewExpr(ast.BooleanTerm(true)))
}

// reads are the parts of the input that the rules read, and those that the rules which use them hand over.
func (p Policy) reads() ([]string, error) {
	var all []string
	collect := func(x any) {
		ast.WalkRefs(x, func(ref ast.Ref) bool {
			if ref.HasPrefix(ast.InputRootRef) {
				all = append(all, ref.ConstantPrefix().String())
			}
			return false
		})
	}
	for name, module := range p.modules {
		if !strings.HasSuffix(name, "_test.rego") {
			collect(module)
		}
	}
	for pkg, text := range map[string]string{"metalaw.selection": p.Selection, "metalaw.admission": p.Admission} {
		if text == "" {
			continue
		}
		user, err := parse("policy.yaml", []byte("package "+pkg+"\n"+text))
		if err != nil {
			return nil, fmt.Errorf("policy %s of the library: %w", p.Name, err)
		}
		collect(user)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
