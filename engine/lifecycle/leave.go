// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/celrule"
)

// MayLeave says whether an exit of a state, interrupts aside, could come to match while the facts that are named keep the
// values that they have in f, while the others change. A state without exits cannot be left; nor can one that the
// lifecycle does not define.
func (l *Lifecycle) MayLeave(s engine.State, f engine.Facts, fixed ...string) bool {
	st, ok := l.states[s]
	if !ok {
		return false
	}
	e := borrow(l, st, f)
	defer e.giveBack()
	e.opens(func(fact string) bool { return !slices.Contains(fixed, fact) })
	return slices.ContainsFunc(st.Exits, func(x *Exit) bool {
		return !x.Interrupt && (x.When == nil || x.When.evaluate(e) != celrule.False)
	})
}

// Ways is what Explain records of the ways out of the present state while nothing is known of some groups of facts. A guard
// that depends on one of them is an error, and the ways after it are tried as well.
func (l *Lifecycle) Ways(f engine.Facts, unknown ...string) engine.Trace {
	st, ok := l.states[l.stateOf(f)]
	if !ok {
		return nil
	}
	e := borrow(l, st, f)
	defer e.giveBack()
	e.opens(func(fact string) bool {
		group, _ := splitFact(fact)
		return slices.Contains(unknown, group)
	})
	trace := engine.Trace{}
	e.trace, e.goesOn = &trace, true
	e.exits()
	return trace
}

// opens leaves each definition undecided that reads a fact which may change: a guard keeps an error apart from both.
func (e *evaluation) opens(may func(fact string) bool) {
	for i, d := range e.l.ast.Definitions {
		if slices.ContainsFunc(d.Facts, func(fact int) bool { return may(e.l.vocabulary.Facts[fact].Name) }) {
			e.values[i] = celrule.Failed
		}
	}
}
