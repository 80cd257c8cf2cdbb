// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/bdd"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// operations are the names of operations that some expression asks for, with their variables.
func (c *checker) operations() []vocable {
	if len(c.words.OperationFacts) == 0 {
		return nil
	}
	at, _ := c.words.Index(c.words.OperationFacts[0])
	return c.vocables[at]
}

// askedFor holds where an operation is asked for.
func (c *checker) askedFor(operation string) bdd.Ref {
	for _, word := range c.operations() {
		if word.word == operation {
			return c.Var(word.variable)
		}
	}
	return bdd.False
}

// unlisted holds where an operation is asked for that the state does not accept.
func (c *checker) unlisted(st *lifecycle.StateAnatomy) bdd.Ref {
	some := bdd.False
	for _, word := range c.operations() {
		if !slices.Contains(st.Operations, word.word) {
			some = c.Or(some, c.Var(word.variable))
		}
	}
	return some
}

// unserved says that an exit is taken for operations alone that the state does not accept.
func (c *checker) unserved(v *view, w *wayOut) bool {
	return c.Meet(v.possible, w.fires) && !c.occurs(v, w.fires)
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
