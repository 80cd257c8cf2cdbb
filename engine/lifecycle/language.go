// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/celrule"
)

// language is a vocabulary as lifecycles are compiled in it: what it says in CEL is compiled before anything else, and for all
// lifecycles alike. It is immutable and safe for concurrent use.
type language struct {
	vocabulary *engine.Vocabulary
	// env is that of definitions and safety rules, and guardEnv that of guards.
	env, guardEnv *cel.Env
	safety        *safety
	// laws are compiled once somebody asks for them: only static checks do.
	laws func() (*laws, error)
}

// laws are what static checks rely on besides the safety rules.
type laws struct {
	axioms, afterMove []*atom
	// brings is by effect, and halts by safety rule and source.
	brings map[string]*atom
	halts  map[[2]string]*atom
}

// languageOf fails only on a mistake in the vocabulary, which is the program's own.
func languageOf(v *engine.Vocabulary) (*language, error) {
	made, err := v.Made(func() (any, error) { return newLanguage(v) })
	if err != nil {
		return nil, fmt.Errorf("vocabulary: %w", err)
	}
	return made.(*language), nil //nolint:forcetypeassert // made above, and nowhere else
}

func newLanguage(v *engine.Vocabulary) (*language, error) {
	g := &language{vocabulary: v}
	var err error
	if g.env, err = newEnv(v); err != nil {
		return nil, err
	}
	if g.guardEnv, err = cel.NewEnv(celrule.Limits()...); err != nil {
		return nil, err
	}
	if g.safety, err = compileSafety(g.env, v); err != nil {
		return nil, err
	}
	g.laws = sync.OnceValues(g.compileLaws)
	return g, nil
}

func (g *language) compileLaws() (*laws, error) {
	l := &laws{brings: map[string]*atom{}}
	c := &safetyCompiler{env: g.env, vocabulary: g.vocabulary, known: map[[2]string]*atom{}}
	l.halts = c.known
	for _, r := range g.safety.requirements() {
		if r.Halts != "" {
			if _, err := c.atom(r.Rule, r.Halts); err != nil {
				return nil, fmt.Errorf("vocabulary: %w", err)
			}
		}
	}
	var err error
	if l.axioms, err = g.axioms(g.vocabulary.Axioms); err != nil {
		return nil, err
	}
	if l.afterMove, err = g.axioms(g.vocabulary.AfterMove); err != nil {
		return nil, err
	}
	for i := range g.vocabulary.Effects {
		e := &g.vocabulary.Effects[i]
		if e.Brings == "" {
			continue
		}
		if l.brings[e.Name], err = g.atom(e.Name, e.Brings); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (g *language) axioms(all []engine.Axiom) ([]*atom, error) {
	var compiled []*atom
	for _, axiom := range all {
		a, err := g.atom("axiom", axiom.Holds)
		if err != nil {
			return nil, err
		}
		compiled = append(compiled, a)
	}
	return compiled, nil
}

func (g *language) atom(name, source string) (*atom, error) {
	a, err := compileRequirement(g.env, g.vocabulary, name, source)
	if err != nil {
		return nil, fmt.Errorf("vocabulary: %w", err)
	}
	return a, nil
}
