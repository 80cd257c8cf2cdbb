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
	for i, d := range l.ast.Definitions {
		open := func(fact int) bool { return !slices.Contains(fixed, l.vocabulary.Facts[fact].Name) }
		if slices.ContainsFunc(d.Facts, open) {
			e.values[i] = celrule.Failed // it may be true or false, and a guard keeps an error apart from both
		}
	}
	return slices.ContainsFunc(st.Exits, func(x *Exit) bool {
		return !x.Interrupt && (x.When == nil || x.When.evaluate(e) != celrule.False)
	})
}
