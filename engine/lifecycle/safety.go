// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// safety holds the requirements that no bundle can switch off, compiled.
type safety struct {
	enter  map[engine.State][]requirement
	arrive map[engine.State][]requirement
	leave  map[engine.State][]requirement
	clear  map[string][]requirement
	set    map[string][]requirement
	effect map[string][]requirement
	// stays is what must hold to stay in a state that has the effect.
	stays map[string][]requirement
	// marks are those that each effect needs stored first, or earns.
	marks map[string][]string
}

// maxAnswers is how many answers of safety rules a decision keeps. Beyond that a rule is asked anew.
const maxAnswers = 64

// safetyCompiler gives the same rule the same atom wherever it is asked for.
type safetyCompiler struct {
	env        *cel.Env
	vocabulary *engine.Vocabulary
	known      map[[2]string]*atom
}

func (c *safetyCompiler) atom(rule, source string) (*atom, error) {
	key := [2]string{rule, source}
	if a, ok := c.known[key]; ok {
		return a, nil
	}
	a, err := compileRequirement(c.env, c.vocabulary, rule, source)
	if err != nil {
		return nil, err
	}
	c.known[key], a.slot = a, len(c.known)+1
	return a, nil
}

type requirement struct {
	engine.Requirement
	atom *atom
	// awaits is nil where it is never open whether the requirement will hold.
	awaits *atom
}

// breach is a requirement that does not hold, or that could not be evaluated.
type breach struct {
	requirement requirement
	err         error
}

func (b *breach) message(what string) string {
	if b.err != nil {
		return fmt.Sprintf("%s needs %s, which cannot be evaluated: %v", what, b.requirement.Rule, b.err)
	}
	return fmt.Sprintf("%s would break %s: %s", what, b.requirement.Rule, b.requirement.Doc)
}

// compileSafety fails only on a mistake in the vocabulary, which is the program's own.
func compileSafety(env *cel.Env, v *engine.Vocabulary) (*safety, error) {
	s := &safety{enter: map[engine.State][]requirement{}, arrive: map[engine.State][]requirement{},
		leave: map[engine.State][]requirement{}, clear: map[string][]requirement{}, set: map[string][]requirement{},
		effect: map[string][]requirement{}, stays: map[string][]requirement{},
		marks: map[string][]string{}}
	c := &safetyCompiler{env: env, vocabulary: v, known: map[[2]string]*atom{}}
	var err error
	for name, all := range v.Enter {
		if s.enter[name], err = c.requirements(all); err != nil {
			return nil, err
		}
	}
	for name, all := range v.Arrive {
		if s.arrive[name], err = c.requirements(all); err != nil {
			return nil, err
		}
	}
	for name, all := range v.Leave {
		if s.leave[name], err = c.requirements(all); err != nil {
			return nil, err
		}
	}
	for name, all := range v.Clear {
		if s.clear[name], err = c.requirements(all); err != nil {
			return nil, err
		}
	}
	for name, all := range v.Set {
		if s.set[name], err = c.requirements(all); err != nil {
			return nil, err
		}
	}
	for _, e := range v.Effects {
		s.marks[e.Name] = slices.Concat(e.Marks, e.Earns)
		if s.effect[e.Name], err = c.requirements(e.Requires); err != nil {
			return nil, err
		}
		if s.stays[e.Name], err = c.requirements(e.Stays); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// requirements lists all of them, in no order.
func (s *safety) requirements() []requirement {
	var all []requirement
	for _, byState := range []map[engine.State][]requirement{s.enter, s.arrive, s.leave} {
		all = append(all, slices.Concat(slices.Collect(maps.Values(byState))...)...)
	}
	for _, byWord := range []map[string][]requirement{s.clear, s.set, s.effect, s.stays} {
		all = append(all, slices.Concat(slices.Collect(maps.Values(byWord))...)...)
	}
	return all
}

func (c *safetyCompiler) requirements(all []engine.Requirement) ([]requirement, error) {
	var compiled []requirement
	for _, r := range all {
		must, err := c.atom(r.Rule, r.Must)
		if err != nil {
			return nil, err
		}
		one := requirement{Requirement: r, atom: must}
		if r.Awaits != "" {
			if one.awaits, err = c.atom(r.Rule, r.Awaits); err != nil {
				return nil, err
			}
		}
		compiled = append(compiled, one)
	}
	return compiled, nil
}

func compileRequirement(env *cel.Env, v *engine.Vocabulary, rule, source string) (*atom, error) {
	file := &yamlpos.File{Name: "vocabulary"}
	c := &atomCompiler{file: file, env: env, vocabulary: v}
	a := c.compile(rule, &yaml.Node{Kind: yaml.ScalarNode, Value: source, Line: 1, Column: 1})
	if a == nil {
		return nil, fmt.Errorf("safety rule %s: %w", rule, file.Found.Err())
	}
	return a, nil
}

func firstBreach(all []requirement, in *activation) *breach {
	for i := range all {
		holds, err := in.holds(all[i].atom)
		if err != nil || !holds {
			return &breach{requirement: all[i], err: err}
		}
	}
	return nil
}

// forEffect checks an effect: what it requires, and what must hold to set those of its marks that are not stored yet. It
// returns the first requirement that is broken; else the first of which it is still open whether it will hold.
func (s *safety) forEffect(name string, stored engine.Value, in *activation) (broken *breach, open *requirement) {
	broken, open = firstBrokenOrOpen(s.effect[name], in)
	for _, mark := range s.marks[name] {
		if broken != nil {
			return broken, nil
		}
		if stored.Has(mark) {
			continue
		}
		var openMark *requirement
		if broken, openMark = firstBrokenOrOpen(s.set[mark], in); open == nil {
			open = openMark
		}
	}
	if broken != nil {
		return broken, nil
	}
	return nil, open
}

func firstBrokenOrOpen(all []requirement, in *activation) (broken *breach, open *requirement) {
	for i := range all {
		b := firstBreach(all[i:i+1], in)
		if b == nil {
			continue
		}
		if b.err == nil && all[i].awaits != nil {
			var still bool
			if still, b.err = in.holds(all[i].awaits); still && b.err == nil {
				if open == nil {
					open = &all[i]
				}
				continue
			}
		}
		return b, nil
	}
	return nil, open
}

// forMove checks a move: what it leaves and clears against the facts as they are, and what it enters against the facts as
// they will be.
func (s *safety) forMove(from engine.State, to *state, e *exit, in *activation) *breach {
	if b := firstBreach(s.leave[from], in); b != nil {
		return b
	}
	for _, mark := range e.clears {
		if b := firstBreach(s.clear[mark], in); b != nil {
			return b
		}
	}
	if b := s.forEntering(to, e.clears, to.marks, in); b != nil {
		return b
	}
	return afterwards(s.arrive[to.name], e.clears, to.marks, in)
}

// forEntering checks the state that a server enters, by a rule or without one.
func (s *safety) forEntering(to *state, clears, sets []string, in *activation) *breach {
	return afterwards(s.enter[to.name], clears, sets, in)
}

// afterwards checks requirements against the facts as they will be: without the marks that a move clears, and with those that
// it sets.
func afterwards(requirements []requirement, clears, sets []string, in *activation) *breach {
	if len(requirements) == 0 {
		return nil
	}
	after := in
	if len(clears) > 0 || len(sets) > 0 {
		after = &activation{vocabulary: in.vocabulary,
			facts: movedFacts{Facts: in.facts, vocabulary: in.vocabulary, clears: clears, sets: sets}}
	}
	return firstBreach(requirements, after)
}

func (s *safety) readsOfMove(from engine.State, to *state, e *exit) []int {
	facts := readsOf(s.leave[from])
	for _, mark := range e.clears {
		facts = append(facts, readsOf(s.clear[mark])...)
	}
	return slices.Concat(facts, readsOf(s.enter[to.name]), readsOf(s.arrive[to.name]))
}

func (s *safety) readsOfEffect(name string) []int {
	facts := readsOf(s.effect[name])
	for _, mark := range s.marks[name] {
		facts = append(facts, readsOf(s.set[mark])...)
	}
	return facts
}

// staying is what must hold to stay in a state because of one of its effects.
type staying struct {
	effect       string
	requirements []requirement
}

// forStaying lists what must hold to stay in a state with these effects, each effect once.
func (s *safety) forStaying(effects []*ensured) []staying {
	var all []staying
	for _, e := range effects {
		name := e.effect.Name
		if len(s.stays[name]) > 0 && !slices.ContainsFunc(all, func(known staying) bool { return known.effect == name }) {
			all = append(all, staying{name, s.stays[name]})
		}
	}
	return all
}

func readsOf(all []requirement) []int {
	var facts []int
	for _, r := range all {
		facts = append(facts, r.atom.facts...)
		if r.awaits != nil {
			facts = append(facts, r.awaits.facts...)
		}
	}
	return facts
}

// movedFacts is the facts as they are once a move has taken marks away and set others.
type movedFacts struct {
	engine.Facts
	vocabulary   *engine.Vocabulary
	clears, sets []string
}

// Fact implements engine.Facts.
func (m movedFacts) Fact(i int) engine.Value {
	v := m.Facts.Fact(i)
	if m.vocabulary.Facts[i].Name != m.vocabulary.MarksFact || v.Missing() {
		return v
	}
	return engine.SetValue(append(without(v.Set(), m.clears), m.sets...))
}

func without(words, drop []string) []string {
	kept := make([]string, 0, len(words))
	for _, w := range words {
		dropped := false
		for _, d := range drop {
			dropped = dropped || d == w
		}
		if !dropped {
			kept = append(kept, w)
		}
	}
	return kept
}
