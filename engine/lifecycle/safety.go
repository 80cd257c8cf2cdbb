// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/metalaw/metalaw/engine"
)

// Safety holds the rules of the vocabulary that no bundle can switch off, and the axioms on which static checks rely besides.
type Safety struct {
	// Enter, Arrive and Leave are by state. Exits alone are asked for Arrive.
	Enter, Arrive, Leave map[engine.State][]*Requirement
	// Clear and Set are by mark.
	Clear, Set map[string][]*Requirement
	// Effect is what an effect requires, and Stays what must hold to stay in a state that has the effect.
	Effect, Stays map[string][]*Requirement
	// Marks are those that each effect needs stored first, or earns.
	Marks map[string][]string
	// EarnsWhere is, by effect, where alone it earns its marks. An effect that may always is not listed.
	EarnsWhere map[string]*Expression
	// Brings is, by effect, what holds only in states that have the effect.
	Brings            map[string]*Expression
	Axioms, AfterMove []*Expression
}

// Requirement is one safety rule. Awaits and Halts are nil where it has none.
type Requirement struct {
	Rule, Doc           string
	Must, Awaits, Halts *Expression
}

// maxAnswers is how many answers of safety rules a decision keeps. Beyond that a rule is asked anew.
const maxAnswers = 64

// breach is a requirement that does not hold, or that could not be evaluated.
type breach struct {
	requirement *Requirement
	err         error
}

func (b *breach) message(what string) string {
	if b.err != nil {
		return fmt.Sprintf("%s needs %s, which cannot be evaluated: %v", what, b.requirement.Rule, b.err)
	}
	return fmt.Sprintf("%s would break %s: %s", what, b.requirement.Rule, b.requirement.Doc)
}

// safetyCompiler gives the same rule the same expression wherever it stands.
type safetyCompiler struct {
	*language
	known map[[2]string]*Expression
	// answers counts the expressions that decisions ask.
	answers int
	err     error
}

// compileSafety fails only on a mistake in the vocabulary, which is the program's own.
func compileSafety(g *language) (*Safety, error) {
	c := &safetyCompiler{language: g, known: map[[2]string]*Expression{}}
	v := g.vocabulary
	s := &Safety{Enter: requirementsBy(c, v.Enter), Arrive: requirementsBy(c, v.Arrive), Leave: requirementsBy(c, v.Leave),
		Clear: requirementsBy(c, v.Clear), Set: requirementsBy(c, v.Set),
		Effect: map[string][]*Requirement{}, Stays: map[string][]*Requirement{}, Marks: map[string][]string{},
		EarnsWhere: map[string]*Expression{}, Brings: map[string]*Expression{},
		Axioms: c.axioms(v.Axioms), AfterMove: c.axioms(v.AfterMove)}
	for i := range v.Effects {
		e := &v.Effects[i]
		s.Marks[e.Name] = slices.Concat(e.Marks, e.Earns)
		s.Effect[e.Name], s.Stays[e.Name] = c.requirements(e.Requires), c.requirements(e.Stays)
		if e.EarnsWhere != "" {
			s.EarnsWhere[e.Name] = c.asked(e.Name, e.EarnsWhere)
		}
		if e.Brings != "" {
			s.Brings[e.Name] = c.expression(e.Name, e.Brings)
		}
	}
	return s, c.err
}

// expression is nil where there is no source, and after a mistake.
func (c *safetyCompiler) expression(rule, source string) *Expression {
	key := [2]string{rule, source}
	if c.known[key] == nil && source != "" && c.err == nil {
		c.known[key], c.err = c.language.expression(rule, source)
	}
	return c.known[key]
}

// asked is an expression that decisions ask: its answer is kept.
func (c *safetyCompiler) asked(rule, source string) *Expression {
	x := c.expression(rule, source)
	if x != nil && x.slot == 0 {
		c.answers++
		x.slot = c.answers
	}
	return x
}

func (c *safetyCompiler) requirements(all []engine.Requirement) []*Requirement {
	var compiled []*Requirement
	for _, r := range all {
		compiled = append(compiled, &Requirement{Rule: r.Rule, Doc: r.Doc,
			Must: c.asked(r.Rule, r.Must), Awaits: c.asked(r.Rule, r.Awaits), Halts: c.expression(r.Rule, r.Halts)})
	}
	return compiled
}

func requirementsBy[K comparable](c *safetyCompiler, all map[K][]engine.Requirement) map[K][]*Requirement {
	compiled := make(map[K][]*Requirement, len(all))
	for name, requirements := range all {
		compiled[name] = c.requirements(requirements)
	}
	return compiled
}

func (c *safetyCompiler) axioms(all []engine.Axiom) []*Expression {
	var compiled []*Expression
	for _, axiom := range all {
		compiled = append(compiled, c.expression("axiom", axiom.Holds))
	}
	return compiled
}

func firstBreach(all []*Requirement, in *activation) *breach {
	for i := range all {
		holds, err := in.holds(all[i].Must)
		if err != nil || !holds {
			return &breach{requirement: all[i], err: err}
		}
	}
	return nil
}

// forEffect checks an effect: what it requires, and what must hold to set those of its marks that are not stored yet. It
// returns the first requirement that is broken, and the first before it of which it is still open whether it will hold.
func (s *Safety) forEffect(name string, stored engine.Value, in *activation) (broken *breach, open *Requirement) {
	broken, open = firstBrokenOrOpen(s.Effect[name], in)
	earns, err := s.earns(name, in)
	if err != nil && broken == nil {
		broken = &breach{requirement: &Requirement{Rule: name}, err: err}
	}
	for _, mark := range s.Marks[name] {
		if broken == nil && earns && !stored.Has(mark) {
			var openMark *Requirement
			broken, openMark = firstBrokenOrOpen(s.Set[mark], in)
			open = cmp.Or(open, openMark)
		}
	}
	return broken, open
}

// earns says that an effect may earn its marks by these facts. One that sets marks first, or always may earn them, does.
func (s *Safety) earns(name string, in *activation) (bool, error) {
	where := s.EarnsWhere[name]
	if where == nil {
		return true, nil
	}
	return in.holds(where)
}

func firstBrokenOrOpen(all []*Requirement, in *activation) (broken *breach, open *Requirement) {
	for i := range all {
		b := firstBreach(all[i:i+1], in)
		if b == nil {
			continue
		}
		if b.err == nil && all[i].Awaits != nil {
			var still bool
			if still, b.err = in.holds(all[i].Awaits); still && b.err == nil {
				open = cmp.Or(open, all[i])
				continue
			}
		}
		return b, open
	}
	return nil, open
}

// forMove checks a move: what it leaves and clears against the facts as they are, and what it enters against the facts as
// they will be.
func (s *Safety) forMove(from engine.State, to *State, e *Exit, in *activation) *breach {
	if b := firstBreach(s.Leave[from], in); b != nil {
		return b
	}
	for _, mark := range e.Clears {
		if b := firstBreach(s.Clear[mark], in); b != nil {
			return b
		}
	}
	if b := afterwards(s.Enter[to.Name], e.Clears, to.Marks, in); b != nil {
		return b
	}
	return afterwards(s.Arrive[to.Name], e.Clears, to.Marks, in)
}

// afterwards checks requirements against the facts as they will be: without the marks that a move clears, and with those that
// it sets.
func afterwards(requirements []*Requirement, clears, sets []string, in *activation) *breach {
	if len(requirements) == 0 {
		return nil
	}
	at, _ := in.vocabulary.Index(engine.FactMarks)
	marks := in.facts.Fact(at)
	if !marks.Missing() {
		kept := slices.DeleteFunc(slices.Clone(marks.Set()), func(mark string) bool { return slices.Contains(clears, mark) })
		marks = engine.SetValue(append(kept, sets...))
	}
	return firstBreach(requirements, &activation{vocabulary: in.vocabulary, facts: changed{in.facts, at, marks}})
}

// forStaying lists what must hold to stay in a state with these effects, each effect once.
func (s *Safety) forStaying(effects []*Ensured) []Staying {
	var all []Staying
	for _, e := range effects {
		again := func(known Staying) bool { return known.Effect.Name == e.Effect.Name }
		if requirements := s.Stays[e.Effect.Name]; len(requirements) > 0 && !slices.ContainsFunc(all, again) {
			all = append(all, Staying{e, requirements})
		}
	}
	return all
}
