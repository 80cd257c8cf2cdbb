// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
	"github.com/metalaw/metalaw/engine/spelling"
)

// given reads one fact of a scenario.
func (p *parser) given(s *Scenario, field yamlpos.Field) {
	i, ok := p.vocabulary.Index(field.Name)
	switch {
	case !ok:
		p.file.Errorf(field.Key, "scenario-unknown-fact", s.Name, p.nearestFact(field.Name), "there is no fact %q", field.Name)
	case field.Name == engine.FactState:
		p.file.Errorf(field.Key, "scenario-form", s.Name, "take the line out", "%s is what state: says", field.Name)
	default:
		if value, ok := p.value(s.Name, p.vocabulary.Facts[i], field.Value); ok {
			s.given[i] = value
		}
	}
}

// nearestFact looks for the whole name, and for the name without its group.
func (p *parser) nearestFact(name string) string {
	if near := spelling.Nearest(name, p.facts); near != "" {
		return "did you mean " + near + "?"
	}
	_, field, _ := strings.Cut(name, ".")
	for _, f := range p.facts {
		if strings.HasSuffix(f, "."+name) || (field != "" && strings.HasSuffix(f, "."+field)) {
			return "did you mean " + f + "?"
		}
	}
	return "the reference page of facts lists what exists"
}

// value reads a value of a fact's type.
func (p *parser) value(scenario string, f engine.FactType, n *yaml.Node) (engine.Value, bool) {
	if f.Kind == engine.Set {
		return p.set(scenario, f, n)
	}
	value, wanted := engine.Value{}, "write one value"
	if n.Kind == yaml.ScalarNode {
		value, wanted = scalar(f, n)
	}
	if wanted != "" {
		p.file.Errorf(n, "scenario-type", scenario, wanted, "%s is of type %s and cannot be %s", f.Name, f.Kind, written(n))
		return engine.Value{}, false
	}
	if f.Kind == engine.Enum || f.Kind == engine.String {
		p.file.Text(n, f.Name) // reports a bare On or Off
	}
	return value, true
}

// scalar reads one value; where it is none of the fact's type it says what to write.
func scalar(f engine.FactType, n *yaml.Node) (value engine.Value, wanted string) {
	switch f.Kind {
	case engine.Enum:
		if !slices.Contains(f.Values, n.Value) {
			return value, "it is one of " + strings.Join(f.Values, ", ")
		}
		return engine.EnumValue(n.Value), ""
	case engine.Bool:
		if n.Style != 0 || (n.Value != "true" && n.Value != "false") {
			return value, "write true or false, without quotes"
		}
		return engine.BoolValue(n.Value == "true"), ""
	case engine.Int:
		number, err := strconv.ParseInt(n.Value, 10, 64)
		if n.Style != 0 || err != nil {
			return value, "write a whole number such as 1, without quotes"
		}
		if number < f.Least {
			return value, fmt.Sprintf("it is never below %d", f.Least)
		}
		return engine.IntValue(number), ""
	case engine.Duration, engine.Age:
		return length(f.Kind, n.Value)
	default:
		return engine.StringValue(n.Value), ""
	}
}

func length(kind engine.Kind, text string) (value engine.Value, wanted string) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil || d < 0:
		return value, "write a length of time such as 5m"
	case kind == engine.Age:
		return engine.AgeValue(d), ""
	default:
		return engine.DurationValue(d), ""
	}
}

func (p *parser) set(scenario string, f engine.FactType, n *yaml.Node) (engine.Value, bool) {
	if n.Kind != yaml.SequenceNode {
		p.file.Errorf(n, "scenario-type", scenario, "write a list such as [Dirty]", "%s is of type %s and cannot be %s", f.Name, f.Kind, written(n))
		return engine.Value{}, false
	}
	words := []string{}
	for _, item := range n.Content {
		var allowed []string
		if f.Name == engine.FactMarks {
			allowed = p.marks
		}
		words = append(words, p.word(item, scenario, "mark-unknown", "mark", allowed))
	}
	return engine.SetValue(words), true
}

func written(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	default:
		return strconv.Quote(n.Value)
	}
}
