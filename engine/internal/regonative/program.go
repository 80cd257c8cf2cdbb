// SPDX-License-Identifier: Apache-2.0

package regonative

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Field is a part of the input.
type Field struct {
	// Keys lead to it.
	Keys []string
	// Get reads it from Frame.In; ok is false where it is absent.
	Get func(in any) (v Value, ok bool)
	// Always: it is never absent. Plain: it is always a string or a whole number. Text: it is always a string.
	Always, Plain, Text bool
	// Varies: it can differ within a series.
	Varies bool
}

// Source finds the longest beginning of keys that leads to a Field; nil where there is none.
type Source func(keys []string) *Field

// Fields are those that something reads, sorted by their keys.
type Fields []*Field

// Of keeps the fields for which holds is true.
func (f Fields) Of(holds func(*Field) bool) Fields {
	return slices.DeleteFunc(slices.Clone(f), func(one *Field) bool { return !holds(one) })
}

// Varies says whether a field can differ within a series.
func Varies(f *Field) bool { return f.Varies }

// With is the union of two sets of fields.
func (f Fields) With(more ...*Field) Fields {
	all := append(slices.Clone(f), more...)
	slices.SortFunc(all, func(a, b *Field) int { return slices.Compare(a.Keys, b.Keys) })
	return slices.CompactFunc(all, func(a, b *Field) bool { return slices.Equal(a.Keys, b.Keys) })
}

// AppendKey appends bytes that are the same for inputs which agree in all the fields.
func (f Fields) AppendKey(b []byte, in any) []byte {
	for _, one := range f {
		v, ok := one.Get(in)
		if !ok {
			b = append(b, 0xff)
			continue
		}
		b = v.AppendKey(b)
	}
	return b
}

// Program is translated Rego. It is immutable.
type Program struct {
	// Factors are what the rules that were asked for depend on.
	Factors []*Factor
	// locals and rules are how many a Frame has to hold.
	locals, rules int
}

// Rule is a translated rule without arguments.
type Rule struct {
	rule *rule
	// Reads are the fields that it can read.
	Reads Fields
}

// Eval is the value of the rule; ok is false where it is undefined. With Frame.GaveUp neither means anything.
func (r *Rule) Eval(f *Frame) (v Value, ok bool) { return r.rule.eval(f) }

// Message is a translated rule that contains {"code": ..., "message": ...}.
type Message struct {
	Code string
	// Reads are what decides whether the rule holds; Words are what only the message reads.
	Reads, Words Fields
	// Late says that the message can be made later, by Text for the same input, and that nothing can go wrong then. It has
	// at least one byte, and at most Fixed and those of as many Fields.
	Late          bool
	Fixed, Fields int

	guard body
	text  eval
	lazy  body
}

// Holds says whether the rule holds. With Frame.GaveUp that means nothing.
func (m *Message) Holds(f *Frame) bool {
	if m.guard.loops {
		return m.guard.any(f)
	}
	return m.guard.holds(f)
}

// Text is the message of a rule that holds. With Frame.GaveUp it means nothing.
func (m *Message) Text(f *Frame) string {
	if !m.lazy.holds(f) {
		f.GaveUp = true
	}
	v, ok := m.text(f)
	s, isString := v.Text()
	if !ok || !isString {
		f.GaveUp = true
	}
	return s
}

// Outside is a place of the rules that only the interpreter evaluates.
type Outside struct {
	Location *ast.Location
	// Rule is the name of the rule; Why completes "because ..."; Hint says how to write it otherwise.
	Rule, Why, Hint string
}

// Translator translates the rules of a compiler. It is for one program.
type Translator struct {
	compiler *ast.Compiler
	source   Source
	program  *Program
	outside  []Outside
	// rules and functions are those that were translated, by the text of their reference.
	rules     map[string]*translated
	functions map[string]*function
	// asked is what was asked for.
	asked uses
	// uses are those of what is being translated; cost counts expressions, those of called functions each time.
	uses uses
	cost int
}

// mostExpressions bounds what one evaluation can come to: calls count as what they call.
const mostExpressions = 10000

// NewTranslator begins a program.
func NewTranslator(compiler *ast.Compiler, source Source) *Translator {
	return &Translator{compiler: compiler, source: source, program: &Program{}, rules: map[string]*translated{}, functions: map[string]*function{}}
}

// Program ends the translation. The program is nil where something lies outside; it is told in the order of the text.
func (t *Translator) Program() (*Program, []Outside) {
	if len(t.outside) == 0 {
		t.factorise()
		return t.program, nil
	}
	slices.SortStableFunc(t.outside, func(a, b Outside) int {
		if c := strings.Compare(a.Location.File, b.Location.File); c != 0 {
			return c
		}
		return (a.Location.Row-b.Location.Row)*10000 + a.Location.Col - b.Location.Col
	})
	return nil, slices.Compact(t.outside)
}

// Rule translates the rule that a reference leads to; nil where there is none.
func (t *Translator) Rule(ref ast.Ref) *Rule {
	rules := t.compiler.GetRulesExact(ref)
	if len(rules) == 0 {
		return nil
	}
	one := t.ruleOf(ref, rules)
	t.asked.as(one.uses)
	return &Rule{one.rule, one.all}
}
