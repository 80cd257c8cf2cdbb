// SPDX-License-Identifier: Apache-2.0

package objectonly

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/metalaw/metalaw/engine/admission"
)

// Rule is a rule in CEL.
type Rule struct {
	// Warns says that the rule warns; it denies else.
	Warns       bool
	Code, Field string
	// Expression is true for an object that passes.
	Expression string
	// Message is what the rule says; empty where MessageExpression computes it.
	Message, MessageExpression string
	File                       string
	Line                       int
}

// Words are the message with the field in front, and the expression that computes it; empty where it is written out. The message
// then stands in for an expression that fails.
func (r Rule) Words() (message, expression string) {
	field := ""
	if r.Field != "" {
		field = r.Field + ": "
	}
	if r.MessageExpression == "" {
		return field + r.Message, ""
	}
	return field + r.Code, tidy(textOf(field, r.MessageExpression))
}

// textOf is an expression with a text in front. CEL knows it to be a string by that.
func textOf(before, expression string) string { return Quoted(before) + " + (" + expression + ")" }

// Left is a rule that is not translated.
type Left struct {
	File string
	Line int
	// Rule is deny or warn, with the code where it is written out; Why completes "because ...".
	Rule, Why string
}

// longest bounds the CEL of one rule in bytes, and mostTerms the terms of Rego that it is made of: helper rules are written out
// wherever they are used.
const (
	longest   = 16 << 10
	mostTerms = 10_000
	tooLong   = "it would be too long in CEL"
)

// Translate translates the deny and warn rules of the files of a bundle, as far as they concern a kind of objects. Files that are
// no Rego are passed over.
func Translate(files map[string][]byte, kind string) ([]Rule, []Left) {
	t := &translator{kind: kind, rules: map[string][]*source{}}
	var asked []*source
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(file, ".rego") || strings.HasSuffix(file, "_test.rego") {
			continue
		}
		module, err := ast.ParseModuleWithOpts(file, string(files[file]), ast.ParserOptions{RegoVersion: ast.RegoV1})
		if err != nil {
			continue
		}
		for _, rule := range module.Rules {
			s := &source{rule, module}
			path := module.Package.Path.String() + "." + rule.Head.Name.String()
			t.rules[path] = append(t.rules[path], s)
			if path == "data."+admission.Package+".deny" || path == "data."+admission.Package+".warn" {
				asked = append(asked, s)
			}
		}
	}
	var rules []Rule
	var left []Left
	for _, s := range asked {
		if rule, why := t.ask(s); why != "" {
			left = append(left, Left{s.rule.Loc().File, s.rule.Loc().Row, s.name(), why})
		} else {
			rules = append(rules, rule)
		}
	}
	return rules, left
}

// source is a rule with the file that it stands in.
type source struct {
	rule   *ast.Rule
	module *ast.Module
}

func (s *source) name() string {
	name := s.rule.Head.Name.String()
	if code := s.said("code"); code != nil {
		if word, ok := code.Value.(ast.String); ok {
			return name + " " + string(word)
		}
	}
	return name
}

// said is what the rule says under a key, where it stands in its head.
func (s *source) said(key string) *ast.Term {
	if s.rule.Head.Key == nil {
		return nil
	}
	object, ok := s.rule.Head.Key.Value.(ast.Object)
	if !ok {
		return nil
	}
	return object.Get(ast.StringTerm(key))
}

// writtenOut is a string that the rule says under a key; empty where it says nothing.
func (s *source) writtenOut(key string) string {
	term := s.said(key)
	if term == nil {
		return ""
	}
	words, ok := term.Value.(ast.String)
	if !ok {
		fail("its " + key + " is not written out in its head")
	}
	return string(words)
}

func (s *source) saysNothingElse() bool {
	head, _ := s.rule.Head.Key.Value.(ast.Object)
	return !head.Until(func(key, _ *ast.Term) bool {
		return !slices.Contains([]string{"code", "message", "field"}, literalText(key))
	})
}

type translator struct {
	kind  string
	rules map[string][]*source
	// What follows is counted within one rule.
	depth, terms, loopVariables int
}

// outside leaves the translation of a rule.
type outside struct{ why string }

func fail(why string) { panic(outside{why}) }

// ask translates one rule, or says why not.
func (t *translator) ask(s *source) (rule Rule, why string) {
	defer func() {
		if e := recover(); e != nil {
			o, ok := e.(outside)
			if !ok {
				panic(e)
			}
			why = o.why
		}
	}()
	if schemas[t.kind] == nil {
		fail("the schema of " + t.kind + " is not known")
	}
	t.depth, t.terms, t.loopVariables = 0, 0, 0
	rule = Rule{Warns: s.rule.Head.Name == "warn", File: s.rule.Loc().File, Line: s.rule.Loc().Row}
	rule.Code, rule.Field = s.writtenOut("code"), s.writtenOut("field")
	if rule.Code == "" || s.said("message") == nil || !s.saysNothingElse() {
		fail("its code and message are not written out in its head")
	}
	condition := t.newScope(s).body(s.rule.Body, func(end *scope) string {
		message := aString(end.operand(s.said("message")))
		if message.literal != nil {
			if rule.Message = literalOf(message); strings.ContainsAny(rule.Message, "\r\n") || strings.TrimSpace(rule.Message) == "" {
				fail("its message has several lines, or none")
			}
			return end.prove(message.defined)
		}
		if end.loops {
			fail("its message is made in a loop")
		}
		rule.MessageExpression = message.cel
		return end.prove(message.defined)
	})
	if condition == no {
		fail("it concerns no " + t.kind)
	}
	if len(condition)+len(rule.MessageExpression) > longest {
		fail(tooLong)
	}
	rule.Expression = tidy(not(condition))
	check(rule.Expression, cel.BoolType)
	if rule.MessageExpression != "" {
		rule.MessageExpression = tidy(rule.MessageExpression)
		check(textOf("", rule.MessageExpression), cel.StringType)
	}
	return rule, ""
}

func literalText(term *ast.Term) string {
	if term == nil {
		return ""
	}
	text, _ := term.Value.(ast.String)
	return string(text)
}

const (
	yes = "true"
	no  = "false"
)

func and(conditions ...string) string {
	var all []string
	for _, c := range conditions {
		switch c {
		case yes, "":
		case no:
			return no
		default:
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return yes
	}
	if len(all) == 1 {
		return all[0]
	}
	return "(" + strings.Join(all, " && ") + ")"
}

func or(conditions ...string) string {
	var all []string
	for _, c := range conditions {
		switch c {
		case no:
		case yes, "":
			return yes
		default:
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return no
	}
	if len(all) == 1 {
		return all[0]
	}
	return "(" + strings.Join(all, " || ") + ")"
}

func not(condition string) string {
	switch condition {
	case yes, "":
		return no
	case no:
		return yes
	}
	return "!(" + condition + ")"
}
