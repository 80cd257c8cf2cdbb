// SPDX-License-Identifier: Apache-2.0

package library

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// span is where the rule of a parameter stands in the text.
type span struct {
	rule       *ast.Rule
	from, past int
}

// spans finds the parameters in a text of the policy's file.
func (p Policy) spans(text []byte) (map[string]span, error) {
	module, err := parse(p.Main(), text)
	if err != nil {
		return nil, err
	}
	all := map[string]span{}
	for _, rule := range module.Rules {
		name := rule.Head.Name.String()
		if isConstant(rule) && slices.ContainsFunc(p.Parameters, func(one Parameter) bool { return one.Name == name }) {
			from := rule.Location.Offset
			all[name] = span{rule, from, from + len(rule.Location.Text)}
		}
	}
	return all, nil
}

// sameButParameters says that a text is the policy's file, but for the values of parameters.
func (p Policy) sameButParameters(text []byte) (bool, error) {
	theirs, err := p.withoutParameters(text)
	if err != nil {
		return false, err
	}
	ours, err := p.withoutParameters(p.Files[p.Main()])
	return err == nil && bytes.Equal(theirs, ours), err
}

func (p Policy) withoutParameters(text []byte) ([]byte, error) {
	spans, err := p.spans(text)
	if err != nil {
		return nil, err
	}
	with := map[string]string{}
	for name := range spans {
		with[name] = name
	}
	return replaced(text, spans, with), nil
}

// withParameters sets parameters in a text of the policy's file.
func (p Policy) withParameters(text []byte, set map[string]string) ([]byte, error) {
	spans, err := p.spans(text)
	if err != nil {
		return nil, err
	}
	with := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		at, known := spans[name]
		if !known {
			return nil, fmt.Errorf("policy %s has no parameter %q; %s", p.Name, name, p.known())
		}
		value, err := valueOf(set[name], at.rule.Head.Value)
		if err != nil {
			return nil, fmt.Errorf("parameter %s of policy %s: %w", name, p.Name, err)
		}
		with[name] = name + " := " + value
	}
	out := replaced(text, spans, with)
	if len(set) > 0 {
		if err := p.checkSense(out, set); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (p Policy) known() string {
	names := make([]string, len(p.Parameters))
	for i, one := range p.Parameters {
		names[i] = one.Name
	}
	return "it has " + strings.Join(names, ", ")
}

func replaced(text []byte, spans map[string]span, with map[string]string) []byte {
	names := slices.SortedFunc(maps.Keys(with), func(a, b string) int { return spans[a].from - spans[b].from })
	var out []byte
	done := 0
	for _, name := range names {
		out = append(append(out, text[done:spans[name].from]...), with[name]...)
		done = spans[name].past
	}
	return append(out, text[done:]...)
}

// valueOf reads a value as Rego, of the kind that the parameter has. Where that kind is a string, quotes may be left out.
func valueOf(text string, like *ast.Term) (string, error) {
	term, err := ast.ParseTerm(text)
	if _, isText := like.Value.(ast.String); isText {
		if err == nil {
			if _, quoted := term.Value.(ast.String); quoted {
				return term.String(), nil
			}
		}
		return ast.StringTerm(text).String(), nil
	}
	if err != nil || !ast.IsConstant(term.Value) {
		return "", fmt.Errorf("%q is no value; write it like %s", text, like)
	}
	if have, want := ast.ValueName(term.Value), ast.ValueName(like.Value); have != want {
		return "", fmt.Errorf("%s is a value of kind %s, and it takes one of kind %s, such as %s", text, have, want, like)
	}
	return term.String(), nil
}
