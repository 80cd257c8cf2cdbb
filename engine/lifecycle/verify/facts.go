// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/bdd"
)

const (
	// maxTries bounds how many values are tried in all to answer opaque expressions as an assignment says.
	maxTries = 100_000
	// maxTriesEach bounds it for one counterexample.
	maxTriesEach = 4096
)

// facts makes facts of an assignment. They are exact where every question in the support of f is answered as the
// assignment says; comparisons that were not explored and opaque expressions may keep it from that.
func (e *encoder) facts(f bdd.Ref, assignment []bool, state engine.State) (v engine.Values, exact bool) {
	v = slices.Clone(e.quiet)
	if i, ok := e.words.Index(engine.FactState); ok {
		v[i] = engine.StringValue(string(state))
	}
	for fact, words := range e.vocables {
		for _, w := range words {
			if assignment[w.variable] {
				v[fact] = textValue(e.words.Facts[fact].Kind, w.word)
			}
		}
	}
	for _, p := range e.primitives {
		switch {
		case p.kind == isTrue:
			v[p.fact] = engine.BoolValue(assignment[p.variable] != p.flipped)
		case p.kind == isIn && assignment[p.variable] != p.flipped:
			v[p.fact] = engine.SetValue(append(slices.Clone(v[p.fact].Set()), p.word))
		}
	}
	for i, f := range e.words.Facts {
		if f.Kind == engine.Set {
			slices.Sort(v[i].Set())
		}
	}
	for _, g := range e.groups {
		e.takeExample(g, assignment, v)
	}
	return e.answerOpaque(f, assignment, v)
}

func textValue(kind engine.Kind, word string) engine.Value {
	if kind == engine.Enum {
		return engine.EnumValue(word)
	}
	return engine.StringValue(word)
}

func (e *encoder) takeExample(g *group, assignment []bool, v engine.Values) {
	var s uint64
	for i, p := range g.comparisons {
		if i < maxComparisons && assignment[p.variable] {
			s |= 1 << i
		}
	}
	for i, n := range g.examples[s] {
		v[g.facts[i]] = ordered(e.words.Facts[g.facts[i]].Kind, n)
	}
}

// puzzle is the search for values by which opaque expressions have the answers assigned.
type puzzle struct {
	*encoder
	assignment []bool
	facts      engine.Values
	// asked are the opaque expressions that matter, kept the other questions, and vary the facts that may be changed.
	asked, kept []*primitive
	vary        []int
	tries       int
}

// answerOpaque looks for values by which the opaque expressions that matter have the answers assigned.
func (e *encoder) answerOpaque(f bdd.Ref, assignment []bool, v engine.Values) (engine.Values, bool) {
	z := &puzzle{encoder: e, assignment: assignment, facts: v}
	support := e.Support(f)
	for _, p := range e.primitives {
		switch {
		case p.kind != isOpaque:
			if support.Has(e.variableOf(p)) {
				z.kept = append(z.kept, p)
			}
		case support.Has(p.variable) || support.Has(p.failure):
			z.asked = append(z.asked, p)
			z.vary = append(z.vary, p.reads...)
		}
	}
	slices.Sort(z.vary)
	z.vary = slices.DeleteFunc(slices.Compact(z.vary), func(i int) bool { return e.words.Facts[i].Name == engine.FactState })
	return v, z.solve(0)
}

// solve tries the values of the facts from the k-th on.
func (z *puzzle) solve(k int) bool {
	if k == len(z.vary) {
		z.tries++
		z.encoder.tries++
		return z.solved()
	}
	at := z.vary[k]
	kept := z.facts[at]
	for _, candidate := range append([]engine.Value{kept}, z.candidates(at)...) {
		if z.tries >= maxTriesEach || z.encoder.tries >= maxTries {
			break
		}
		z.facts[at] = candidate
		if z.solve(k + 1) {
			return true
		}
	}
	z.facts[at] = kept
	return false
}

func (z *puzzle) solved() bool {
	for _, p := range z.kept {
		if p.holds(z.facts) != (z.assignment[z.variableOf(p)] != p.flipped) {
			return false
		}
	}
	return !slices.ContainsFunc(z.asked, func(p *primitive) bool { return !z.agrees(p) })
}

// variableOf is the variable of a primitive that is not opaque, or one that is in no support.
func (e *encoder) variableOf(p *primitive) int {
	if p.kind != isWord {
		return p.variable
	}
	for _, w := range e.vocables[p.fact] {
		if w.word == p.word {
			return w.variable
		}
	}
	return -1
}

// agrees evaluates an opaque expression with CEL itself.
func (z *puzzle) agrees(p *primitive) bool {
	x, ok := z.evaluators[p]
	if !ok {
		x, _ = z.lifecycle.Compile("opaque", p.word) // nil where its text cannot be compiled by itself: it then stays open
		z.evaluators[p] = x
	}
	if x == nil {
		return false
	}
	value, err := z.lifecycle.Evaluate(x, z.facts)
	if p.failure >= 0 && z.assignment[p.failure] {
		return err != nil
	}
	return err == nil && value == z.assignment[p.variable]
}

// candidates are values of a fact by which an opaque expression may have another answer.
func (z *puzzle) candidates(fact int) []engine.Value {
	f := z.words.Facts[fact]
	var literals []any
	for _, p := range z.asked {
		if slices.Contains(p.reads, fact) {
			literals = append(literals, p.literals...)
		}
	}
	var all []engine.Value
	switch f.Kind {
	case engine.Bool:
		return []engine.Value{engine.BoolValue(false), engine.BoolValue(true)}
	case engine.Enum:
		for _, w := range f.Values {
			all = append(all, engine.EnumValue(w))
		}
	case engine.String:
		for _, w := range append(texts(literals), z.askedOf(fact)...) {
			for _, variant := range []string{w, w + "x", "x" + w, strings.ToLower(w), strings.ToUpper(w)} {
				all = append(all, engine.StringValue(variant))
			}
		}
		all = append(all, engine.StringValue(""), engine.StringValue("x"))
	case engine.Set:
		words := texts(literals)
		for _, w := range words {
			all = append(all, engine.SetValue([]string{w}))
		}
		all = append(all, engine.SetValue(nil), engine.SetValue(words), engine.SetValue([]string{"a", "b"}))
	case engine.Int, engine.Duration, engine.Age:
		for _, n := range numbers(literals) {
			if f.Kind == engine.Int || n > 0 {
				all = append(all, ordered(f.Kind, n))
			}
		}
	}
	return all
}

func texts(literals []any) []string {
	var all []string
	for _, l := range literals {
		if s, ok := l.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

// numbers are those at which arithmetic may turn: around zero, around the literals, and at the ends.
func numbers(literals []any) []int64 {
	all := []int64{0, 1, 2, -1}
	for _, l := range literals {
		switch x := l.(type) {
		case int64:
			all = append(all, x-1, x, x+1, x*2, -x)
		case string:
			if d, err := time.ParseDuration(x); err == nil {
				all = append(all, int64(d)-1, int64(d), int64(d)+1, int64(d)*2)
			}
		}
	}
	return append(all, math.MaxInt64, math.MinInt64)
}
