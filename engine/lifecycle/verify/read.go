// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"maps"
	"slices"

	celast "github.com/google/cel-go/common/ast"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// reader turns typed CEL into forms and collects the primitives that it meets.
type reader struct {
	words      *engine.Vocabulary
	primitives []*primitive
	known      map[string]int
	// forms are the expressions read, and deadlines the comparisons of the age with what an exit waits for.
	forms     map[*lifecycle.Expression]read
	deadlines map[*lifecycle.Deadline]*form
	// typed is the expression being read; inState says that it asks for the state, in a form that was understood.
	typed   *celast.AST
	inState bool
}

type read struct {
	form      *form
	asksState bool
}

// readAll reads every expression that a decision can depend on.
func readAll(ast *lifecycle.AST, assumed []*lifecycle.Expression) *reader {
	r := &reader{words: ast.Vocabulary, known: map[string]int{}, forms: map[*lifecycle.Expression]read{}, deadlines: map[*lifecycle.Deadline]*form{}}
	safety := ast.Safety
	r.read(safety.Axioms...)
	r.read(safety.AfterMove...)
	r.read(assumed...)
	for _, effect := range slices.Sorted(maps.Keys(safety.Brings)) {
		r.read(safety.Brings[effect])
	}
	r.read(ast.Definitions...)
	for _, from := range slices.Sorted(maps.Keys(ast.Migrate)) {
		r.readRequirements(safety.Leave[from])
		r.readRequirements(safety.Enter[ast.Migrate[from]])
	}
	for _, st := range ast.States {
		r.readState(st, safety)
	}
	return r
}

func (r *reader) readState(st *lifecycle.State, safety *lifecycle.Safety) {
	for _, x := range st.Exits {
		r.readDeadline(x.After)
		for _, mark := range x.Clears {
			r.mark(mark)
			r.readRequirements(safety.Clear[mark])
		}
	}
	for _, mark := range st.Marks {
		r.mark(mark)
	}
	for _, e := range st.Ensure {
		r.readRequirements(safety.Effect[e.Effect.Name])
		r.readRequirements(safety.Stays[e.Effect.Name])
		r.read(safety.EarnsWhere[e.Effect.Name])
		for _, mark := range safety.Marks[e.Effect.Name] {
			r.mark(mark)
			r.readRequirements(safety.Set[mark])
		}
	}
	r.readRequirements(safety.Enter[st.Name])
	r.readRequirements(safety.Arrive[st.Name])
	r.readRequirements(safety.Leave[st.Name])
}

func (r *reader) readRequirements(all []*lifecycle.Requirement) {
	for _, one := range all {
		r.read(one.Must, one.Awaits, one.Halts)
	}
}

// read reads expressions; nil stands for none.
func (r *reader) read(all ...*lifecycle.Expression) {
	for _, x := range all {
		if _, ok := r.forms[x]; x == nil || ok {
			continue
		}
		r.typed, r.inState = x.Checked, false
		f := r.form(x.Checked.Expr())
		r.forms[x] = read{f, r.inState}
	}
}

// mark is the question whether a mark is stored.
func (r *reader) mark(word string) *form {
	i, _ := r.words.Index(engine.FactMarks)
	return r.use(&primitive{kind: isIn, fact: i, word: word})
}

func (r *reader) readDeadline(d *lifecycle.Deadline) {
	if d == nil || r.deadlines[d] != nil {
		return
	}
	age, _ := r.words.Index(engine.FactAge)
	right := operand{fact: -1, literal: int64(d.Literal)}
	if d.Fact >= 0 {
		right = operand{fact: d.Fact}
	}
	r.deadlines[d] = negated(r.comparison(less, operand{fact: age}, right))
}
