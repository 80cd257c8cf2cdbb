// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Rules are gone through when something asks for what they come to, so that their order does not matter; and functions once for
// each shape of what they are called with, so that one call of a function does not count as part of another. (The compiler's types
// do not flow through calls, but values do: evaluation copies what calls of calls return before anything counts it.) Rego has no recursion:
// the compiler says so of a rule that asks for itself, and here it comes to what is known of it by then.

// definition is one rule of a name, with what its module calls things.
type definition struct {
	rule    *ast.Rule
	pkg     ast.Ref
	aliases map[string]ast.Ref
	// names are the full names of what rules of the package begin with, as named has found them.
	names map[ast.Var]string
}

// frame is where the terms stand that are gone through.
type frame struct {
	definition
	// values is what the names of the frame's variables begin with.
	values string
	// blamed is the rule to name when a value comes to too much: not a function, which may be called with anything, but who calls it.
	blamed *ast.Rule
}

func (s *sharing) define(modules map[string]*ast.Module) {
	s.definitions = map[string][]definition{}
	for _, file := range slices.Sorted(maps.Keys(modules)) {
		module, aliases, names := modules[file], map[string]ast.Ref{}, map[ast.Var]string{}
		for _, i := range module.Imports {
			if ref, ok := i.Path.Value.(ast.Ref); ok {
				aliases[string(i.Name())] = ref
			}
		}
		for _, rule := range module.Rules {
			name := module.Package.Path.Extend(rule.Head.Ref().GroundPrefix()).String()
			s.definitions[name] = append(s.definitions[name], definition{rule, module.Package.Path, aliases, names})
		}
	}
	s.rules = slices.Sorted(maps.Keys(s.definitions))
}

// named is the full name that a variable has as a rule of its package, or as the beginning of one, and empty where there is none.
func (s *sharing) named(v ast.Var) string {
	name, known := s.names[v]
	if !known {
		name = s.pkg.Extend(ast.Ref{ast.NewTerm(v)}).String()
		if i, _ := slices.BinarySearch(s.rules, name); i == len(s.rules) || !strings.HasPrefix(s.rules[i], name) {
			name = ""
		}
		s.names[v] = name
	}
	return name
}

func (s *sharing) isFunction(name string) bool {
	of := s.definitions[name]
	return len(of) > 0 && len(of[0].rule.Head.Args) > 0
}

// rule goes through a rule, or a function whose arguments have no computed parts, unless this pass is done with it.
func (s *sharing) rule(name string) {
	if s.definitions[name] != nil {
		s.visit(name, name, nil, nil)
	}
}

// result is what a function comes to that is called with such arguments.
func (s *sharing) result(name string, arguments []levels) levels {
	called := fmt.Sprint(name, arguments)
	s.visit(name, called, arguments, s.blamed)
	return s.sizes[called]
}

// visit goes through the definitions of a name and notes what they come to; nobody else is blamed for them where blamed is nil.
func (s *sharing) visit(name, result string, arguments []levels, blamed *ast.Rule) {
	if s.open[name] || s.closed[result] || s.widest != nil {
		return
	}
	s.open[name], s.closed[result] = true, true
	outer := s.frame
	for i, d := range s.definitions[name] {
		s.frame = frame{definition: d, values: fmt.Sprint(result, "#", i, " "), blamed: blamed}
		if blamed == nil {
			s.blamed = d.rule
		}
		for r := d.rule; r != nil; r = r.Else {
			s.note(result, s.made(r, arguments))
		}
	}
	s.frame = outer
	delete(s.open, name)
}

// made is what one rule comes to, or one else of it.
func (s *sharing) made(rule *ast.Rule, arguments []levels) levels {
	for i, argument := range rule.Head.Args[:min(len(arguments), len(rule.Head.Args))] {
		s.bind(argument, arguments[i])
	}
	s.body(rule.Body)
	size := levels(nil)
	switch {
	case rule.Head.Value != nil && rule.Head.Key != nil:
		size = s.of(rule.Head.Key).or(s.of(rule.Head.Value)).under(1 + s.repeats)
	case rule.Head.Key != nil:
		size = s.of(rule.Head.Key).under(s.repeats)
	case rule.Head.Value != nil:
		size = s.of(rule.Head.Value)
	}
	ref := s.frame.rule.Head.Ref()
	for range ref[len(ref.GroundPrefix()):] {
		size = size.under(s.repeats)
	}
	return size
}

// giveUp blames the present rule for what cannot be counted, or the latest one that something was learned of.
func (s *sharing) giveUp() {
	if s.widest != nil {
		return
	}
	s.widest, s.untold = s.blamed, true
	if s.blamed == nil {
		s.widest = s.latest
	}
}
