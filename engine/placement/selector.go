// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/internal/yamlpos"
	"github.com/metalaw/metalaw/engine/selection"
)

const (
	domain    = `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
	labelName = `[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`
)

var (
	labelKey   = regexp.MustCompile(`^(` + domain + `(\.` + domain + `)*/)?` + labelName + `$`)
	labelValue = regexp.MustCompile(`^(` + labelName + `)?$`)
)

// selector reads a label selector. It is never nil.
func (p *parser) selector(f yamlpos.Field, rule string) *selection.Selector {
	s := &selection.Selector{}
	rule += "." + f.Name
	for _, part := range p.file.Fields(f.Value, rule, "matchLabels", "matchExpressions") {
		switch part.Name {
		case "matchLabels":
			s.MatchLabels = map[string]string{}
			for _, label := range p.file.Fields(part.Value, rule+".matchLabels") {
				p.labelKey(label, rule)
				s.MatchLabels[label.Name] = p.labelValue(label, rule)
			}
		case "matchExpressions":
			for i, item := range p.file.Items(part.Value, rule+".matchExpressions") {
				s.MatchExpressions = append(s.MatchExpressions, p.requirement(item, fmt.Sprintf("%s.matchExpressions[%d]", rule, i)))
			}
		}
	}
	return s
}

func (p *parser) requirement(n *yaml.Node, rule string) selection.Expression {
	before := len(p.file.Found)
	fields := p.file.Fields(n, rule, "key", "operator", "values")
	p.require(n, rule, fields, "key", "operator")
	var e selection.Expression
	for _, field := range fields {
		switch field.Name {
		case "key":
			e.Key = p.file.Text(field.Value, "key")
			if e.Key != "" && !labelKey.MatchString(e.Key) {
				p.file.Errorf(field.Value, "placement-selector", rule, keyHint, "%q is no key of a label", e.Key)
			}
		case "operator":
			e.Operator = p.file.Text(field.Value, "operator")
		case "values":
			for _, item := range p.file.Items(field.Value, "values") {
				e.Values = append(e.Values, p.labelValue(yamlpos.Field{Name: "values", Key: item, Value: item}, rule))
			}
		}
	}
	one := selection.Selector{MatchExpressions: []selection.Expression{e}}
	if err := one.Validate(); err != nil && before == len(p.file.Found) {
		p.file.Errorf(n, "placement-selector", rule, "write it as in spec.serverSelector", "%s",
			strings.TrimPrefix(err.Error(), "matchExpressions[0]: "))
	}
	return e
}

const keyHint = "a key is letters, digits, '-', '_' and '.', at most 63, perhaps behind a domain and a slash"

func (p *parser) labelKey(f yamlpos.Field, rule string) {
	if !labelKey.MatchString(f.Name) {
		p.file.Errorf(f.Key, "placement-selector", rule, keyHint, "%q is no key of a label", f.Name)
	}
}

func (p *parser) labelValue(f yamlpos.Field, rule string) string {
	value := p.file.Text(f.Value, f.Name)
	if !labelValue.MatchString(value) {
		p.file.Errorf(f.Value, "placement-selector", rule, "a value is letters, digits, '-', '_' and '.', at most 63",
			"no label can have the value %q", value)
	}
	return value
}
