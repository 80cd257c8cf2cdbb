// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"slices"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/bdd"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// outcome is the two functions of a condition: where it is true and where it is false. Elsewhere it is an error.
type outcome struct{ yes, no bdd.Ref }

// encoder gives every primitive a variable and every expression its functions. A variable is true where a fact is not
// quiet, so that an assignment with few true variables is a scenario that says little.
type encoder struct {
	*bdd.Manager
	*reader
	lifecycle *lifecycle.Lifecycle
	ast       *lifecycle.AST
	safety    *lifecycle.Safety
	quiet     engine.Values
	groups    []*group
	weights   []int
	// vocables are the words that each enum or string is asked for, without its quiet one, with their variables; other is
	// the variable of a string that has none of them.
	vocables map[int][]vocable
	// domain holds for the combinations of answers that can occur in any state, and assumed where what is assumed does.
	domain, assumed bdd.Ref
	// outcomes remembers what was encoded, by state where the expression asks for it.
	outcomes map[outcomeKey]outcome
	// evaluators evaluate opaque expressions; tries counts how often values were tried for them.
	evaluators map[*primitive]*lifecycle.Expression
	tries      int
}

type vocable struct {
	word     string
	variable int
}

type outcomeKey struct {
	expression *lifecycle.Expression
	state      engine.State
}

// otherText stands for a string that is none of those asked for.
const otherText = "some other"

func newEncoder(l *lifecycle.Lifecycle, limit int, assumed []*lifecycle.Expression) *encoder {
	ast := l.AST()
	e := &encoder{Manager: bdd.New(limit), reader: readAll(ast, assumed), lifecycle: l, ast: ast, safety: ast.Safety,
		quiet: ast.Vocabulary.Quiet(), vocables: map[int][]vocable{}, outcomes: map[outcomeKey]outcome{},
		evaluators: map[*primitive]*lifecycle.Expression{}}
	e.assignVariables()
	e.domain, e.assumed = e.possible(), bdd.True
	for _, x := range assumed {
		e.assumed = e.And(e.assumed, e.outcome(x, "").yes)
	}
	return e
}

// assignVariables orders the primitives by their facts and gives them variables.
func (e *encoder) assignVariables() {
	sorted := slices.Clone(e.primitives)
	slices.SortStableFunc(sorted, func(a, b *primitive) int { return cmp.Compare(a.first(), b.first()) })
	for _, p := range sorted {
		p.failure = -1
		switch p.kind {
		case isWord:
			e.assignWords(p)
		case isOpaque:
			p.variable = e.variable()
			if p.canFail {
				p.failure = e.variable()
			}
		default:
			p.flipped = p.holds(e.quiet)
			p.variable = e.variable()
		}
	}
	e.groups = groupsOf(e.words, sorted)
}

func (e *encoder) variable() int {
	e.weights = append(e.weights, 1)
	return len(e.weights) - 1
}

// assignWords gives each word of an enum or a string a variable but the quiet one, which it has where it has no other.
func (e *encoder) assignWords(p *primitive) {
	f := e.words.Facts[p.fact]
	if _, ok := e.vocables[p.fact]; !ok {
		calm := f.Quiet.Text()
		asked := f.Values
		if f.Kind != engine.Enum {
			asked = append(e.askedOf(p.fact), otherText)
		}
		e.vocables[p.fact] = []vocable{}
		for _, w := range asked {
			if w != calm {
				e.vocables[p.fact] = append(e.vocables[p.fact], vocable{w, e.variable()})
			}
		}
	}
}

func (e *encoder) askedOf(fact int) []string {
	var asked []string
	for _, p := range e.primitives {
		if p.kind == isWord && p.fact == fact {
			asked = append(asked, p.word)
		}
	}
	return asked
}

// possible is what can occur: an enum has one word, comparisons agree with each other, and the axioms hold.
func (e *encoder) possible() bdd.Ref {
	domain := bdd.True
	for i := range e.words.Facts {
		domain = e.And(domain, e.atMostOne(e.vocables[i]))
	}
	for _, g := range e.groups {
		g.explore(e.words, e.quiet)
		domain = e.And(domain, g.possible(e.Manager, nil))
	}
	for _, p := range e.primitives {
		if p.failure >= 0 {
			domain = e.And(domain, e.Not(e.And(e.Var(p.variable), e.Var(p.failure))))
		}
	}
	for _, x := range e.safety.Axioms {
		domain = e.And(domain, e.outcome(x, "").yes)
	}
	return domain
}

func (e *encoder) atMostOne(all []vocable) bdd.Ref {
	none, one := bdd.True, bdd.True
	for _, v := range slices.Backward(all) {
		x := e.Var(v.variable)
		none, one = e.Ite(x, bdd.False, none), e.Ite(x, none, one)
	}
	return one
}

// outcome encodes an expression as it is in a state.
func (e *encoder) outcome(x *lifecycle.Expression, state engine.State) outcome {
	r := e.forms[x]
	key := outcomeKey{expression: x}
	if r.asksState {
		key.state = state
	}
	if o, ok := e.outcomes[key]; ok {
		return o
	}
	o := e.encode(r.form, state)
	e.outcomes[key] = o
	return o
}

func (e *encoder) constant(b bool) outcome {
	if b {
		return outcome{yes: bdd.True, no: bdd.False}
	}
	return outcome{yes: bdd.False, no: bdd.True}
}

func (e *encoder) encode(f *form, state engine.State) outcome {
	switch f.op { //nolint:exhaustive // those with kids follow below
	case formConst:
		return e.constant(f.value)
	case formState:
		return e.constant(f.word == string(state))
	case formPrimitive:
		return e.answer(e.primitives[f.primitive])
	}
	kids := make([]outcome, len(f.kids))
	for i, kid := range f.kids {
		kids[i] = e.encode(kid, state)
	}
	switch f.op {
	case formNot:
		return outcome{kids[0].no, kids[0].yes}
	case formAnd:
		return e.all(kids)
	case formOr:
		return e.any(kids)
	case formIff: // an error on either side is an error
		a, b := kids[0], kids[1]
		return outcome{e.Or(e.And(a.yes, b.yes), e.And(a.no, b.no)), e.Or(e.And(a.yes, b.no), e.And(a.no, b.yes))}
	default: // formIte
		c, a, b := kids[0], kids[1], kids[2]
		return outcome{e.Or(e.And(c.yes, a.yes), e.And(c.no, b.yes)), e.Or(e.And(c.yes, a.no), e.And(c.no, b.no))}
	}
}

// all follows Kleene's logic, as guards and CEL do: false decides it, also beside an error.
func (e *encoder) all(kids []outcome) outcome {
	o := e.constant(true)
	for _, k := range kids {
		o = outcome{e.And(o.yes, k.yes), e.Or(o.no, k.no)}
	}
	return o
}

func (e *encoder) any(kids []outcome) outcome {
	o := e.constant(false)
	for _, k := range kids {
		o = outcome{e.Or(o.yes, k.yes), e.And(o.no, k.no)}
	}
	return o
}

// answer is the functions of a primitive.
func (e *encoder) answer(p *primitive) outcome {
	var yes bdd.Ref
	switch p.kind {
	case isWord:
		yes = e.hasWord(p)
	case isOpaque:
		yes = e.Var(p.variable)
		if p.failure >= 0 {
			failed := e.Var(p.failure)
			return outcome{e.Without(yes, failed), e.And(e.Not(yes), e.Not(failed))}
		}
	default:
		yes = e.Var(p.variable)
		if p.flipped {
			yes = e.Not(yes)
		}
	}
	return outcome{yes, e.Not(yes)}
}

func (e *encoder) hasWord(p *primitive) bdd.Ref {
	none := bdd.True
	for _, v := range e.vocables[p.fact] {
		if v.word == p.word {
			return e.Var(v.variable)
		}
		none = e.Without(none, e.Var(v.variable))
	}
	if p.word != e.words.Facts[p.fact].Quiet.Text() {
		return bdd.False // a word that the enum does not have
	}
	return none
}
