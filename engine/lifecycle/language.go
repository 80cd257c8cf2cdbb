// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/celrule"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// language is the vocabulary as lifecycles are compiled in it. It is immutable and safe for concurrent use.
type language struct {
	vocabulary *engine.Vocabulary
	// env is that of definitions and safety rules, and guardEnv that of guards.
	env, guardEnv *cel.Env
	safety        *Safety

	stateFact, ageFact, marksFact int
}

// languages holds the language of each vocabulary. The program has one vocabulary; tests have others.
var languages sync.Map

// languageOf fails only on a mistake in the vocabulary, which is the program's own.
func languageOf(v *engine.Vocabulary) (*language, error) {
	made, _ := languages.LoadOrStore(v, sync.OnceValues(func() (*language, error) { return newLanguage(v) }))
	return made.(func() (*language, error))() //nolint:forcetypeassert // stored above, and nowhere else
}

func newLanguage(v *engine.Vocabulary) (*language, error) {
	g := &language{vocabulary: v}
	for name, at := range map[string]*int{engine.FactState: &g.stateFact, engine.FactAge: &g.ageFact, engine.FactMarks: &g.marksFact} {
		i, ok := v.Index(name)
		if !ok {
			return nil, fmt.Errorf("vocabulary: there is no fact %q", name)
		}
		*at = i
	}
	var err error
	if g.env, err = newEnv(v); err != nil {
		return nil, fmt.Errorf("vocabulary: %w", err)
	}
	if g.guardEnv, err = cel.NewEnv(celrule.Limits()...); err != nil {
		return nil, fmt.Errorf("vocabulary: %w", err)
	}
	g.safety, err = compileSafety(g)
	return g, err
}

// expression compiles CEL that stands in no file of a bundle.
func (g *language) expression(name, source string) (*Expression, error) {
	file := &yamlpos.File{Name: "vocabulary"}
	c := &atomCompiler{language: g, file: file}
	x := c.compile(name, &yaml.Node{Kind: yaml.ScalarNode, Value: source, Line: 1, Column: 1})
	if x == nil {
		return nil, fmt.Errorf("vocabulary: safety rule %s: %w", name, file.Found.Err())
	}
	return x, nil
}
