// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/bdd"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// operations are the names of operations that some expression asks for, with their variables.
func (m *model) operations() []vocable {
	at, _ := m.words.Index(engine.FactOperation)
	return m.vocables[at]
}

// askedFor holds where an operation is asked for.
func (m *model) askedFor(operation string) bdd.Ref {
	for _, word := range m.operations() {
		if word.word == operation {
			return m.Var(word.variable)
		}
	}
	return bdd.False
}

// unlisted holds where an operation is asked for that the state does not accept.
func (m *model) unlisted(st *lifecycle.State) bdd.Ref {
	some := bdd.False
	for _, word := range m.operations() {
		if !slices.Contains(st.Operations, word.word) {
			some = m.Or(some, m.Var(word.variable))
		}
	}
	return some
}

// unserved says that an exit is taken for operations alone that the state does not accept.
func (m *model) unserved(v *view, w *wayOut) bool {
	return m.Meet(v.possible, w.fires) && !m.occurs(v, w.fires)
}

// tellUnserved reports a rule that fires for operations alone which no state accepts that it is for, the given one among them.
func (c *checker) tellUnserved(v *view, w *wayOut) {
	var names []string
	for _, word := range c.operations() {
		if !slices.Contains(v.Operations, word.word) && c.Meet(c.And(v.possible, c.Var(word.variable)), w.fires) {
			names = append(names, word.word)
		}
	}
	slices.Sort(names)
	list := strings.Join(names, ", ")
	if w.Interrupt {
		c.add(diag.Error, CodeOperationUnlisted, w.At, w.Rule, nil, "write operations: ["+list+"] in the states in which it may be asked for",
			"%s fires only for the operation %s, which no state accepts that it is for", w.Rule, list)
		return
	}
	c.add(diag.Error, CodeOperationUnlisted, w.At, w.Rule, nil, "write operations: ["+list+"] in the state, or remove the rule",
		"in %s, %s fires only for the operation %s, which the state does not accept", v.Name, w.Rule, list)
}

// checkOperations looks for operations that a state accepts and that nothing there serves: they would be pending for as long as the
// server stays.
func (c *checker) checkOperations() {
	for _, v := range c.order {
		for i, op := range v.Operations {
			if slices.Contains(c.words.Handled, op) || slices.Contains(v.Operations[:i], op) || c.serves(v, op) {
				continue
			}
			c.add(diag.Warning, CodeOperationIdle, v.OperationsAt[i], string(v.Name), nil, "add a rule or an effect that serves it, or take it out",
				"the state accepts the operation %s, and nothing is done about it there", op)
		}
	}
}

// serves says that an exit or an effect of a state may answer to an operation.
func (m *model) serves(v *view, operation string) bool {
	return slices.ContainsFunc(v.exits, func(w wayOut) bool {
		named, some := m.named(w.when, operation)
		return named || !some && m.readsOperation(w.When)
	}) || slices.ContainsFunc(v.effects, func(w wanted) bool {
		named, _ := m.named(w.when, operation)
		kind := slices.IndexFunc(m.words.Effects, func(e engine.EffectType) bool { return e.Name == w.Effect.Name })
		return named || kind >= 0 && slices.Contains(m.words.Effects[kind].Serves, operation)
	})
}

// named says whether a guard depends on an operation by its name, and whether on any.
func (m *model) named(when outcome, operation string) (this, some bool) {
	support := m.Support(when.yes)
	for _, word := range m.operations() {
		if support.Has(word.variable) {
			this, some = this || word.word == operation, true
		}
	}
	return this, some
}

// readsOperation says that a guard asks anything about an operation.
func (m *model) readsOperation(g *lifecycle.Condition) bool {
	return slices.ContainsFunc(g.Atoms(), func(atom int) bool {
		return slices.ContainsFunc(m.ast.Definitions[atom].Facts, func(fact int) bool {
			return slices.Contains(engine.OperationFacts, m.words.Facts[fact].Name)
		})
	})
}
