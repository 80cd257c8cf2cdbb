// SPDX-License-Identifier: Apache-2.0

package objectonly

import (
	"maps"
	"slices"
	"strings"

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

// Left is a rule that is not translated.
type Left struct {
	File string
	Line int
	// Rule is deny or warn, with the code where it is written out; Why completes "because ...".
	Rule, Why string
}

// longest bounds the CEL of one rule in bytes: helper rules are written out wherever they are used.
const longest = 16 << 10

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

type translator struct {
	kind  string
	rules map[string][]*source
	depth int
	names int
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
	t.depth, t.names = 0, 0
	rule = Rule{Warns: s.rule.Head.Name == "warn", File: s.rule.Loc().File, Line: s.rule.Loc().Row}
	rule.Code, rule.Field = literalText(s.said("code")), literalText(s.said("field"))
	if rule.Code == "" || s.said("message") == nil {
		fail("its code and message are not written out in its head")
	}
	condition := t.newScope(s).body(s.rule.Body, func(end *scope) string {
		message := end.operand(s.said("message"))
		if text, ok := message.literal.(ast.String); ok {
			if rule.Message = string(text); strings.ContainsAny(rule.Message, "\r\n") {
				fail("its message has several lines")
			}
			return yes
		}
		if end.loops {
			fail("its message is made in a loop")
		}
		rule.MessageExpression = message.cel
		return and(message.defined, yes)
	})
	if condition == no {
		fail("it concerns no " + t.kind)
	}
	if len(condition)+len(rule.MessageExpression) > longest {
		fail("it would be too long in CEL")
	}
	rule.Expression, rule.MessageExpression = tidy(not(condition)), tidy(rule.MessageExpression)
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
