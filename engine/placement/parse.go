// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// parser reads one document.
type parser struct {
	file *yamlpos.File
	env  *cel.Env
	// cost is that of all conditions.
	cost uint64
	out  Placement
}

// Parse compiles a document. The Placement is nil where a finding is an Error; all of them are told at once. Warnings tell
// of what has no effect. file is the name under which findings speak of it, such as File.
func Parse(file, text string) (*Placement, diag.List) {
	if len(text) > MaxBytes {
		return nil, diag.List{{Severity: diag.Error, Code: "placement-size", File: file, Line: 1, Column: 1,
			Message: fmt.Sprintf("the placement has %d bytes, and at most %d are read", len(text), MaxBytes),
			Hint:    "say less: combine conditions, and ask for one of several values with in"}}
	}
	if strings.TrimSpace(text) == "" {
		return nil, diag.List{{Severity: diag.Error, Code: "placement-empty", File: file, Line: 1, Column: 1,
			Message: "the placement is empty", Hint: "take the annotation away, or write one of " + keys}}
	}
	env, err := environment()
	if err != nil {
		return nil, diag.List{{Severity: diag.Error, Code: "cel-program", File: file, Message: err.Error()}}
	}
	p := &parser{file: yamlpos.Parse(file, []byte(text)), env: env}
	if p.file.Root != nil {
		p.document(p.file.Root)
	}
	for i := range p.file.Found {
		if hint, ok := quoteHints[p.file.Found[i].Code]; ok {
			p.file.Found[i].Hint = hint
		}
	}
	if p.file.Found.HasErrors() {
		return nil, p.file.Found
	}
	p.out.asks, p.out.cost = p.out.canonical(), 1+int64(p.cost)
	return &p.out, p.file.Found
}

// quoteHints say what to do about conditions that YAML reads as something else.
var quoteHints = map[string]string{
	"yaml-quote": `put the whole value in single quotes, such as where: '"gpu" in server.labels'`,
	"yaml-tag":   `put the whole value in single quotes, such as where: '!("gpu" in server.labels)'`,
}

var keys = strings.Join([]string{fieldWhere, fieldAlternatives, fieldPreferred, fieldSpread, fieldGang}, ", ")

func (p *parser) document(root *yaml.Node) {
	fields := p.file.Fields(root, "a placement", strings.Split(keys, ", ")...)
	if len(fields) == 0 && !p.file.Found.HasErrors() {
		p.file.Errorf(root, "placement-empty", "", "take the annotation away, or write one of "+keys, "the placement asks for nothing")
	}
	var spread *yamlpos.Field
	for i := range fields {
		switch f := fields[i]; f.Name {
		case fieldWhere:
			p.out.where = p.expression(f.Value, fieldWhere)
		case fieldAlternatives:
			p.alternatives(f)
		case fieldPreferred:
			p.preferred(f)
		case fieldGang:
			p.gang(f)
		case fieldSpread:
			spread = &fields[i]
		}
	}
	if spread != nil { // after the gang, which it may mean
		p.spread(*spread)
	}
	if p.cost > maxCost {
		p.file.Errorf(root, "cel-cost", "", "compare with ==, in or startsWith, say the same thing once, and do not join texts",
			"evaluating all conditions may cost %d units, and at most %d are allowed", p.cost, maxCost)
	}
}

func (p *parser) alternatives(f yamlpos.Field) {
	items := p.file.Items(f.Value, fieldAlternatives)
	p.fewer(f, len(items), MaxAlternatives)
	everything := false
	for i, item := range items {
		rule := fmt.Sprintf("%s[%d]", fieldAlternatives, i)
		if everything {
			p.warn(item, "placement-no-effect", rule, "put the alternative without selector and where last",
				"this alternative is never reached: the one before it has every server")
			everything = false // once is enough
		}
		var a alternative
		fields := p.file.Fields(item, rule, "selector", fieldWhere)
		for _, f := range fields {
			switch f.Name {
			case "selector":
				a.selector = p.selector(f, rule)
			case fieldWhere:
				a.where = p.expression(f.Value, rule)
			}
		}
		everything = everything || (len(fields) == 0 && i+1 < len(items))
		p.out.alternatives = append(p.out.alternatives, a)
	}
}

func (p *parser) preferred(f yamlpos.Field) {
	items := p.file.Items(f.Value, fieldPreferred)
	p.fewer(f, len(items), MaxPreferred)
	var up, down int64
	for i, item := range items {
		rule := fmt.Sprintf("%s[%d]", fieldPreferred, i)
		var one preference
		fields := p.file.Fields(item, rule, "weight", fieldWhere)
		p.require(item, rule, fields, "weight", fieldWhere)
		for _, f := range fields {
			switch f.Name {
			case "weight":
				one.weight = p.number(f, rule, -MaxWeight, MaxWeight)
				if one.weight == 0 && f.Value.Value == "0" {
					p.file.Errorf(f.Value, "placement-number", rule, "write a number above or below zero, or take the preference out",
						"a weight of 0 changes nothing")
				}
			case fieldWhere:
				one.where = p.expression(f.Value, rule)
			}
		}
		up, down = up+max(one.weight, 0), down-min(one.weight, 0)
		p.out.preferred = append(p.out.preferred, one)
	}
	if most := max(up, down); most > MaxScore {
		p.file.Errorf(f.Key, "placement-number", fieldPreferred, "lower the weights; what counts is how they compare",
			"the weights can add up to %d, and at most %d is allowed", most, MaxScore)
	}
}

// fewer reports a list that is too long, and one that is empty.
func (p *parser) fewer(f yamlpos.Field, have, most int) {
	switch {
	case have > most:
		p.file.Errorf(f.Key, "placement-number", f.Name, "combine some of them with || and in", "there are %d %s, and at most %d are read",
			have, f.Name, most)
	case have == 0 && f.Value.Kind == yaml.SequenceNode:
		p.file.Errorf(f.Key, "placement-empty", f.Name, "take it out", "%s has no entry", f.Name)
	}
}

// require reports keys that are not there.
func (p *parser) require(n *yaml.Node, rule string, fields []yamlpos.Field, names ...string) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for _, name := range names {
		if !slices.ContainsFunc(fields, func(f yamlpos.Field) bool { return f.Name == name }) {
			p.file.Errorf(n, "yaml-missing-key", rule, "add "+name+":", "%s is missing", name)
		}
	}
}

// number reads a whole number within bounds; 0 where it is none, which has been recorded then.
func (p *parser) number(f yamlpos.Field, rule string, least, most int64) int64 {
	n, err := strconv.ParseInt(f.Value.Value, 10, 64)
	if f.Value.Kind != yaml.ScalarNode || f.Value.Style != 0 || err != nil || n < least || n > most {
		p.file.Errorf(f.Value, "placement-number", rule, fmt.Sprintf("write a whole number from %d to %d, without quotes", least, most),
			"%s is no such number", f.Name)
		return 0
	}
	return n
}

func (p *parser) warn(n *yaml.Node, code, rule, hint, format string, args ...any) {
	p.file.Errorf(n, code, rule, hint, format, args...)
	if last := len(p.file.Found) - 1; p.file.Found[last].Code == code {
		p.file.Found[last].Severity = diag.Warning
	}
}
