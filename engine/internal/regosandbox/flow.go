// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/util"
)

// flow follows the input through a rule and all that it uses: through the names that it is given, the functions that it is handed to,
// and object.get. It tells too much of what is read, never too little.
type flow struct {
	compiler *ast.Compiler
	// read is told of each part of the input that is read, as the keys that lead to it, with the place; no keys are the whole.
	read func(path []string, at *ast.Location)
	seen map[string]bool
}

// reads calls read for what a rule reads of the input, by itself and by what it uses.
func (m *Module) reads(rule *ast.Rule, read func(path []string, at *ast.Location)) {
	f := &flow{m.compiler, read, map[string]bool{}}
	f.rule(rule, nil)
}

// rule follows one rule, of whose parameters some are the input.
func (f *flow) rule(rule *ast.Rule, isInput []bool) {
	key := fmt.Sprintf("%p %t", rule, isInput)
	if f.seen[key] {
		return
	}
	f.seen[key] = true
	called := map[*ast.Rule]bool{}
	for one := rule; one != nil; one = one.Else {
		f.one(one, isInput, called)
	}
	for next := range f.compiler.Graph.Dependencies(util.T(rule)) {
		if used, ok := next.(*ast.Rule); ok && !called[used] {
			f.rule(used, nil)
		}
	}
}

// one follows one body with its head.
func (f *flow) one(rule *ast.Rule, isInput []bool, called map[*ast.Rule]bool) {
	b := &body{flow: f, at: rule.Loc(), names: map[ast.Var]bool{}, naming: map[*ast.Expr]bool{}, called: called}
	for i, parameter := range rule.Head.Args {
		name, ok := parameter.Value.(ast.Var)
		switch given := i < len(isInput) && isInput[i]; {
		case given && ok:
			b.names[name] = true
		case given:
			b.tell(nil, parameter)
		}
	}
	b.name(rule)
	for _, t := range append(slices.Clone(rule.Head.Reference), rule.Head.Key, rule.Head.Value) {
		if t != nil {
			b.walk(t)
		}
	}
	b.walk(rule.Body)
}

// body is one body with the names that it gives to the input. The compiler has made all names different by now.
type body struct {
	*flow
	// at is where the rule is: what the compiler makes has no place of its own.
	at    *ast.Location
	names map[ast.Var]bool
	// naming are the expressions that do nothing but give a name.
	naming map[*ast.Expr]bool
	// called are the functions that were followed with what they are handed.
	called map[*ast.Rule]bool
	// exchanged says that something is evaluated under with, where another function may stand in the place of one.
	exchanged bool
}

func (b *body) tell(path []string, t *ast.Term) {
	b.read(path, cmp.Or(t.Loc(), b.at))
}

// name finds the names, until there are no more: one may be given to what has one already. Where one is compared with something
// besides, that is another use of it.
func (b *body) name(rule *ast.Rule) {
	for more := true; more; {
		more = false
		ast.WalkExprs(rule.Body, func(e *ast.Expr) bool {
			if b.naming[e] || e.Negated || len(e.With) > 0 || !e.IsEquality() && !e.IsAssignment() {
				return false
			}
			for _, pair := range [][2]*ast.Term{{e.Operand(0), e.Operand(1)}, {e.Operand(1), e.Operand(0)}} {
				name, ok := pair[0].Value.(ast.Var)
				isParameter := slices.ContainsFunc(rule.Head.Args, pair[0].Equal)
				if ok && !isParameter && !b.names[name] && b.isInput(pair[1]) {
					b.names[name], b.naming[e], more = true, true, true
					break
				}
			}
			return false
		})
	}
}

// isInput says that a term is the whole input.
func (b *body) isInput(t *ast.Term) bool {
	switch v := t.Value.(type) {
	case ast.Var:
		return b.names[v]
	case ast.Ref:
		return len(v) == 1 && b.begins(v)
	}
	return false
}

// begins says that a reference begins at the input.
func (b *body) begins(ref ast.Ref) bool {
	name, ok := ref[0].Value.(ast.Var)
	return ref.HasPrefix(ast.InputRootRef) || ok && b.names[name]
}

// walk tells what a part of the syntax tree reads.
func (b *body) walk(node any) {
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Expr:
			return b.expression(x)
		case *ast.Term:
			return b.term(x)
		}
		return false
	}).Walk(node)
}

// expression says that all of an expression was told, as term does of a term.
func (b *body) expression(e *ast.Expr) bool {
	if b.naming[e] {
		return true
	}
	if len(e.With) > 0 && !b.exchanged {
		within := *b
		within.exchanged = true
		within.walk(e)
		return true
	}
	terms, ok := e.Terms.([]*ast.Term)
	return ok && b.call(terms)
}

func (b *body) term(t *ast.Term) bool {
	switch v := t.Value.(type) {
	case ast.Call:
		return b.call(v)
	case ast.Var:
		if b.names[v] {
			b.tell(nil, t)
		}
	case ast.Ref:
		if !b.begins(v) {
			return false
		}
		b.tell(constantKeys(v[1:]), t)
		for _, key := range v[1:] {
			b.walk(key)
		}
		return true
	}
	return false
}

// call tells what a call reads that is handed the input and looks only into a part of it: object.get with keys that are written out,
// and the functions of the bundle. It says whether it is one.
func (b *body) call(terms []*ast.Term) bool {
	ref, ok := terms[0].Value.(ast.Ref)
	if !ok || b.exchanged {
		return false
	}
	args := terms[1:]
	if ref.String() == "object.get" && len(args) > 2 && b.isInput(args[0]) {
		b.tell(writtenKeys(args[1]), args[0])
		for _, t := range args[1:] {
			b.walk(t)
		}
		return true
	}
	functions := b.compiler.GetRulesExact(ref)
	if len(functions) == 0 {
		return false
	}
	isInput := make([]bool, len(functions[0].Head.Args))
	for i, t := range args {
		if i < len(isInput) && b.isInput(t) {
			isInput[i] = true
			continue
		}
		b.walk(t)
	}
	for _, function := range functions {
		b.called[function] = true
		b.rule(function, isInput)
	}
	return true
}

// writtenKeys are those of object.get as far as they are written out.
func writtenKeys(t *ast.Term) []string {
	switch v := t.Value.(type) {
	case ast.String:
		return []string{string(v)}
	case *ast.Array:
		var all ast.Ref
		v.Foreach(func(t *ast.Term) { all = append(all, t) })
		return constantKeys(all)
	}
	return nil
}
