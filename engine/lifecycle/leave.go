// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"

	"github.com/metalaw/metalaw/engine"
)

// MayLeave says whether an exit of a state, interrupts aside, could come to match while the facts that are named keep the
// values that they have in f, whatever becomes of the others. A state without exits cannot be left; nor can one that the
// lifecycle does not define.
func (l *Lifecycle) MayLeave(s engine.State, f engine.Facts, fixed ...string) bool {
	st, ok := l.states[s]
	if !ok {
		return false
	}
	q := supposition{l: l, state: s, in: activation{vocabulary: l.vocabulary, facts: f}}
	for _, name := range fixed {
		if i, ok := l.vocabulary.Index(name); ok {
			q.fixed = append(q.fixed, i)
		}
	}
	for _, x := range st.Exits {
		if !x.Interrupt && (x.When == nil || x.When.evaluate(&q) != isFalse) {
			return true
		}
	}
	return false
}

// supposition answers a guard's questions by some facts only. What reads another one is an error, which a guard keeps apart from
// false.
type supposition struct {
	l     *Lifecycle
	state engine.State
	in    activation
	fixed []int
}

// atom implements questions.
func (q *supposition) atom(i int) truth {
	a := q.l.ast.Definitions[i]
	for _, fact := range a.Facts {
		if !slices.Contains(q.fixed, fact) {
			return isError
		}
	}
	value, err := a.evaluate(&q.in)
	if err != nil {
		return isError
	}
	return truthOf(value)
}

// inState implements questions.
func (q *supposition) inState(name string) bool { return string(q.state) == name }

// ensuring implements questions. The guards of exits do not ask.
func (q *supposition) ensuring(string) bool { return false }

// acting implements questions. The guards of exits do not ask.
func (q *supposition) acting() bool { return false }
