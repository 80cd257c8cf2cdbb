// SPDX-License-Identifier: Apache-2.0

package regonative

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Messages translates the rules that make up a set of messages; none where there is no such set.
func (t *Translator) Messages(ref ast.Ref) []*Message {
	var all []*Message
	for _, rule := range t.compiler.GetRulesExact(ref) {
		t.try(func() { all = append(all, t.message(rule)) })
	}
	return all
}

func (t *Translator) message(rule *ast.Rule) *Message {
	s, m := t.newScope(rule), &Message{}
	head, at := s.element()
	var text *ast.Term
	if head != nil && head.Len() == 2 {
		if code := head.Get(ast.StringTerm("code")); code != nil {
			m.Code, _ = Of(code.Value).Text()
		}
		text = head.Get(ast.StringTerm("message"))
	}
	if m.Code == "" || text == nil {
		s.fail(rule.Loc(), "the code is not written out",
			`write {"code": "word", "message": ...} in the head of the rule, with one rule for each code`)
	}
	words := s.words(text, at)
	m.Fixed, m.Fields, m.Late = words.fixed, words.fields, len(words.late) > 0
	if literal, ok := text.Value.(ast.String); ok {
		m.Fixed, m.Late = len(literal), literal != ""
	}
	guard := t.collecting(func() {
		for i, expr := range rule.Body {
			if i != at && !words.late[i] {
				s.expression(expr, &m.guard)
			}
		}
		if len(words.late) == 0 {
			m.text = s.value(text)
		}
	})
	if m.guard.loops && !m.Late {
		s.fail(rule.Loc(), "the message is made in a loop", "say what is wrong without naming each element")
	}
	if m.Reads = guard.all; len(words.late) > 0 {
		m.Words = t.collecting(func() { s.late(words, text, m) }).all
	}
	t.asked.as(guard)
	return m
}

// late translates what makes a message.
func (s *scope) late(words words, text *ast.Term, m *Message) {
	for i, expr := range s.rule.Body {
		if words.late[i] {
			s.expression(expr, &m.lazy)
		}
	}
	m.text = s.value(text)
}

// element is the object that a rule adds to the set, and the expression of the body that makes it; -1 where it stands in the
// head.
func (s *scope) element() (ast.Object, int) {
	if object, ok := s.rule.Head.Key.Value.(ast.Object); ok {
		return object, -1
	}
	for i, expr := range s.rule.Body {
		if !expr.IsEquality() || expr.Negated || len(expr.With) > 0 || !expr.Operand(0).Equal(s.rule.Head.Key) {
			continue
		}
		if object, ok := expr.Operand(1).Value.(ast.Object); ok {
			return object, i
		}
	}
	return nil, -1
}

// words is how a message is made where nothing can go wrong on the way: then it need not be made to know that the rule
// holds. The message has at least one byte and at most fixed, and those of so many fields.
type words struct {
	// late are the expressions of the body that make it.
	late          map[int]bool
	fixed, fields int
}

// words looks for the expressions that make a message. They are late where they are calls of sprintf or concat that cannot
// fail, and where nothing else uses what they yield.
func (s *scope) words(text *ast.Term, at int) words {
	found := words{late: map[int]bool{}}
	sought, ok := text.Value.(ast.Var)
	for ok {
		i, expr := s.onlyUse(sought, at, found.late)
		if expr == nil {
			return words{}
		}
		found.late[i] = true
		if other, alias := aliasOf(expr, sought); alias {
			sought = other
			continue
		}
		if !s.makesText(expr, sought, &found) {
			return words{}
		}
		return found
	}
	return words{}
}

// onlyUse is the one expression of the body in which a variable occurs, besides those that were found.
func (s *scope) onlyUse(v ast.Var, except int, late map[int]bool) (at int, only *ast.Expr) {
	for i, expr := range s.rule.Body {
		if i == except || late[i] || !expr.Vars(ast.VarVisitorParams{}).Contains(v) {
			continue
		}
		if only != nil {
			return 0, nil
		}
		at, only = i, expr
	}
	if only == nil || only.Negated || len(only.With) > 0 {
		return 0, nil
	}
	return at, only
}

// aliasOf is x of v = x.
func aliasOf(expr *ast.Expr, v ast.Var) (ast.Var, bool) {
	if !expr.IsEquality() {
		return "", false
	}
	target, _ := expr.Operand(0).Value.(ast.Var)
	source, isVar := expr.Operand(1).Value.(ast.Var)
	return source, isVar && target == v
}

// makesText says whether a call makes a string of one byte or more for any input.
func (s *scope) makesText(expr *ast.Expr, into ast.Var, found *words) bool {
	terms, ok := expr.Terms.([]*ast.Term)
	if !ok || len(terms) != 4 || !terms[3].Equal(ast.VarTerm(string(into))) {
		return false
	}
	first, isText := terms[1].Value.(ast.String)
	list, isList := terms[2].Value.(*ast.Array)
	if !isText || !isList {
		return false
	}
	fixed := string(first)
	const each = 48 // what a number, or the complaint about a verb, comes to at most
	found.fixed = len(fixed) + each*list.Len()
	switch terms[0].String() {
	case ast.Sprintf.Name:
		if fixed, ok = withoutVerbs(fixed); !ok {
			return false
		}
	case ast.Concat.Name:
		found.fixed += len(fixed) * list.Len()
		if list.Len() < 2 {
			fixed = ""
		}
	default:
		return false
	}
	for i := range list.Len() {
		literal, field := s.plainPart(list.Elem(i))
		switch {
		case terms[0].String() == ast.Concat.Name && !isString(literal, field):
			return false
		case literal != nil:
			found.fixed += len(literal.s)
			fixed += literal.s
		case field != nil:
			found.fields++
		default:
			return false
		}
	}
	return fixed != ""
}

func isString(literal *Value, field *Field) bool {
	return (literal != nil && literal.kind == isText) || (field != nil && field.Text)
}

// plainPart is what an element of a message certainly is: a literal, or a field that is always there.
func (s *scope) plainPart(term *ast.Term) (*Value, *Field) {
	if _, isVar := term.Value.(ast.Var); !isVar {
		if literal := Of(term.Value); literal.kind == isText || literal.kind == isInt {
			return &literal, nil
		}
		return nil, nil
	}
	for _, expr := range s.rule.Body {
		if expr.IsEquality() && !expr.Negated && len(expr.With) == 0 && expr.Operand(0).Equal(term) {
			return nil, s.plainField(expr.Operand(1))
		}
	}
	return nil, nil
}

// plainField is the field of the input that a term names, where it is always there; else nil.
func (s *scope) plainField(term *ast.Term) *Field {
	ref, _ := term.Value.(ast.Ref)
	if !ref.HasPrefix(ast.InputRootRef) {
		return nil
	}
	var keys []string
	for _, key := range ref[1:] {
		name, ok := key.Value.(ast.String)
		if !ok {
			return nil
		}
		keys = append(keys, string(name))
	}
	if field := s.source(keys); field != nil && field.Always && field.Plain && len(field.Keys) == len(keys) {
		return field
	}
	return nil
}

// withoutVerbs is a format without its verbs; ok is false where it has others than the plain ones.
func withoutVerbs(format string) (rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		i++
		if i == len(format) || !strings.ContainsRune("sdv%", rune(format[i])) {
			return "", false
		}
		if format[i] == '%' {
			b.WriteByte('%')
		}
	}
	return b.String(), true
}
