// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
	"github.com/metalaw/metalaw/engine/spelling"
)

// compileEnsures compiles what a state ensures, and warns of what it ensures twice.
func (c *compiler) compileEnsures(s stateSpec) []*Ensured {
	var all []*Ensured
	seen := map[string]bool{}
	for _, e := range s.ensure {
		compiled := c.compileEnsure(s.name, e)
		if compiled == nil {
			continue
		}
		whole := wholeText(compiled.Effect, e.when)
		if seen[whole] {
			c.file.Warnf(e.at, "effect-duplicate", s.name, "take one of them out", "the state ensures %s twice in the same way", e.do)
		}
		seen[whole] = true
		all = append(all, compiled)
	}
	return all
}

// wholeText is an effect with its parameters, in any order, and its condition.
func wholeText(effect engine.Effect, when *yaml.Node) string {
	var words []string
	for _, p := range effect.Params {
		words = append(words, p.Name+"="+p.Value.String())
	}
	slices.Sort(words)
	words = slices.Concat([]string{effect.Name}, words, []string{"when"})
	if when != nil {
		words = append(words, strings.Fields(when.Value)...)
	}
	return strings.Join(words, " ")
}

func (c *compiler) compileEnsure(stateName string, e ensureSpec) *Ensured {
	kind, ok := c.vocabulary.Effect(e.do)
	if !ok {
		var names []string
		for _, k := range c.vocabulary.Effects {
			names = append(names, k.Name)
		}
		hint := spelling.Hint(e.do, names, "effects: "+strings.Join(names, ", "))
		c.file.Errorf(e.at, "effect-unknown", stateName, hint, "there is no effect %q", e.do)
		return nil
	}
	compiled := &Ensured{Effect: engine.Effect{Name: e.do}, Kind: kind, At: placeOf(e.at), When: c.condition(stateName, e.when, nil)}
	for _, f := range e.with {
		compiled.Effect.Params = append(compiled.Effect.Params, c.param(kind, f))
	}
	c.checkContradictions(kind, compiled.Effect, e.with)
	return compiled
}

// checkContradictions refuses a parameter that is false where another one would have to say for how long.
func (c *compiler) checkContradictions(kind engine.EffectType, effect engine.Effect, with []yamlpos.Field) {
	if slices.ContainsFunc(with, func(f yamlpos.Field) bool { return c.file.Told(f.Value) }) {
		return
	}
	for _, f := range with {
		i := slices.IndexFunc(kind.Params, func(t engine.ParamType) bool { return t.Name == f.Name && t.FalseNeeds != "" })
		if i < 0 || effect.Param(f.Name).Bool() {
			continue
		}
		if needs := kind.Params[i].FalseNeeds; effect.Param(needs).Duration() == 0 {
			c.file.Errorf(f.Value, "param-contradiction", kind.Name, fmt.Sprintf("give %s a duration such as 5m, or take %s out", needs, f.Name),
				"%s is false, and without %s, or with 0, it is as if it were true", f.Name, needs)
		}
	}
}

func (c *compiler) param(kind engine.EffectType, f yamlpos.Field) engine.Param {
	p := engine.Param{Name: f.Name}
	i := slices.IndexFunc(kind.Params, func(t engine.ParamType) bool { return t.Name == f.Name })
	if i < 0 {
		c.file.Errorf(f.Key, "param-unknown", kind.Name, "the reference page lists the parameters", "%s has no parameter %q", kind.Name, f.Name)
		return p
	}
	t := kind.Params[i]
	if t.Kind == engine.Bool {
		p.Value = engine.BoolValue(c.file.Bool(f.Value, f.Name))
		return p
	}
	text := c.file.Text(f.Value, f.Name)
	if c.file.Told(f.Value) {
		return p
	}
	switch t.Kind {
	case engine.Duration:
		p.Value = engine.DurationValue(c.paramDuration(kind.Name, t, f.Value))
	case engine.Enum:
		if !slices.Contains(t.Values, text) {
			c.file.Errorf(f.Value, "param-type", kind.Name, "it is one of "+strings.Join(t.Values, ", "), "%s cannot be %q", f.Name, text)
		}
		p.Value = engine.EnumValue(text)
	default:
		p.Value = engine.StringValue(text)
	}
	return p
}

// paramDuration reads a length of time within the bounds of a parameter.
func (c *compiler) paramDuration(effect string, t engine.ParamType, node *yaml.Node) time.Duration {
	d, err := time.ParseDuration(node.Value)
	switch tooLong := yamlpos.TooLong(node.Value); {
	case t.Most > 0 && (tooLong || d > t.Most):
		most := yamlpos.LengthText(t.Most)
		c.file.Errorf(node, "param-range", effect, "write a duration of "+most+" at most", "%s is %s, and at most %s: %s",
			t.Name, node.Value, most, t.MostBecause)
	case tooLong:
		c.file.Errorf(node, "param-range", effect, "write a duration such as 5m", "%s is %s, and at most %s", t.Name, node.Value, yamlpos.Longest)
	case err != nil || d < 0:
		c.file.Errorf(node, "param-type", effect, "write a duration such as 5m", "%s is not a duration: %q", t.Name, node.Value)
	}
	return d
}

// written lists some of the state's effects as the lifecycle writes them. Decisions share the list. It is nil where the state has more
// than mostShared effects.
func (s *State) written(wanted uint) []engine.Effect {
	if wanted >= uint(len(s.shared)) {
		return nil
	}
	if all := s.shared[wanted].Load(); all != nil {
		return *all
	}
	var all []engine.Effect
	for i, one := range s.Ensure {
		if wanted&(1<<i) != 0 {
			all = append(all, one.Effect)
		}
	}
	all = slices.Clip(all)
	s.shared[wanted].Store(&all)
	return all
}
