// SPDX-License-Identifier: Apache-2.0

package regonative

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// stop is what leaves the translation of an expression that lies outside.
type stop struct{ Outside }

// scope is what is known within one rule while it is translated.
type scope struct {
	*Translator
	rule  *ast.Rule
	bound map[ast.Var]operand
}

func (s *scope) fail(loc *ast.Location, why, hint string) {
	if loc == nil || loc.File == "" {
		loc = s.rule.Loc()
	}
	panic(stop{Outside{Location: loc, Rule: s.rule.Head.Ref().GroundPrefix().String(), Why: why, Hint: hint}})
}

// try runs a part of the translation. It returns false where that lies outside, which is recorded.
func (t *Translator) try(do func()) (ok bool) {
	defer func() {
		switch e := recover().(type) {
		case nil:
			ok = true
		case stop:
			t.outside = append(t.outside, e.Outside)
		default:
			panic(e)
		}
	}()
	do()
	return true
}

func (t *Translator) newScope(rule *ast.Rule) *scope {
	return &scope{t, rule, map[ast.Var]operand{}}
}

// local makes room for a value.
func (t *Translator) local() int {
	t.program.locals++
	return t.program.locals - 1
}

// uses is what a part of the rules reads.
type uses struct {
	// all are the fields that it can read; own are those that it reads without another rule, and rules are these.
	all, own Fields
	rules    []*translated
}

func (u *uses) field(f *Field) { u.all, u.own = u.all.With(f), u.own.With(f) }

func (u *uses) rule(r *translated) {
	u.all = u.all.With(r.all...)
	if !slices.Contains(u.rules, r) {
		u.rules = append(u.rules, r)
	}
}

func (u *uses) as(other uses) {
	u.all, u.own = u.all.With(other.all...), u.own.With(other.own...)
	for _, r := range other.rules {
		u.rule(r)
	}
}

// collecting runs do and returns what it uses.
func (t *Translator) collecting(do func()) uses {
	outer := t.uses
	t.uses = uses{}
	do()
	inner := t.uses
	t.uses = outer
	return inner
}

// translated is a rule with what it uses.
type translated struct {
	rule *rule
	uses
}

// ruleOf translates the rules of one name without arguments.
func (t *Translator) ruleOf(ref ast.Ref, rules []*ast.Rule) *translated {
	key := ref.String()
	one := t.rules[key]
	if one == nil {
		one = &translated{rule: &rule{number: t.program.rules, unit: -1}}
		t.program.rules++
		t.rules[key] = one
		one.uses = t.collecting(func() { one.rule.clauses = t.clausesOf(rules, nil) })
		one.rule.fixed = len(one.all.Of(Varies)) == 0
	}
	t.uses.rule(one)
	return one
}

// function is what the rules of a function came to.
type function struct {
	clauses
	uses
	// first is the local of the first argument.
	first int
	cost  int
}

func (t *Translator) functionOf(ref ast.Ref, rules []*ast.Rule) *function {
	key := ref.String()
	fn := t.functions[key]
	if fn != nil {
		t.cost += fn.cost
	} else {
		fn = &function{first: t.program.locals}
		t.functions[key] = fn
		t.program.locals += len(rules[0].Head.Args)
		before := t.cost
		fn.uses = t.collecting(func() { fn.clauses = t.clausesOf(rules, fn) })
		fn.cost = t.cost - before
	}
	t.uses.as(fn.uses)
	return fn
}

// clausesOf translates all rules of one name. What lies outside is recorded; the result is of no use then.
func (t *Translator) clausesOf(rules []*ast.Rule, fn *function) clauses {
	var all clauses
	for _, one := range rules {
		if one.Default {
			t.try(func() {
				all.fallback = t.newScope(one).value(one.Head.Value)
			})
			continue
		}
		first := &clause{}
		all.all = append(all.all, first)
		for branch, into := one, first; branch != nil; branch = branch.Else {
			t.branch(branch, fn, into)
			if branch.Else != nil {
				into.next = &clause{}
				into = into.next
			}
		}
	}
	return all
}

// branch translates one body and its value.
func (t *Translator) branch(rule *ast.Rule, fn *function, into *clause) {
	s := t.newScope(rule)
	complete := t.try(func() {
		if rule.Head.RuleKind() == ast.MultiValue {
			s.fail(rule.Loc(), "another rule reads the set "+rule.Head.Ref().GroundPrefix().String(),
				"a candidate with a reject is turned away in any case, so allow need not ask; name a set by := {...} where its elements are known")
		}
		if len(rule.Head.Ref()) > 1 && !rule.Head.Ref().IsGround() {
			s.fail(rule.Loc(), "its keys are computed", "write an object by := {...}")
		}
		if fn != nil {
			s.arguments(fn, &into.body)
		}
	})
	for _, expr := range rule.Body {
		// Once something lies outside, what follows may use what it would have given a value.
		complete = complete && t.try(func() { s.expression(expr, &into.body) })
	}
	if complete {
		t.try(func() { into.value = s.value(rule.Head.Value) })
	}
}

// arguments binds the parameters of a function, whose values the caller has put into its locals.
func (s *scope) arguments(fn *function, into *body) {
	for i, param := range s.rule.Head.Args {
		slot := fn.first + i
		value := operand{eval: func(f *Frame) (Value, bool) { return f.locals[slot], true }}
		if v, ok := param.Value.(ast.Var); ok && !s.isBound(v) {
			s.bound[v] = value
			continue
		}
		s.unify(value, s.operand(param), into)
	}
}
