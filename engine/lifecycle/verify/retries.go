// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// checkRetries looks for guards that ask how often something was tried, where that is never counted: a rule that gives up
// after the third time would never give up.
func (c *checker) checkRetries() {
	counts := map[int]bool{} // the definitions that ask for it
	fact, known := c.words.Index(engine.FactRetries)
	for i, d := range c.ast.Definitions {
		if known && slices.Contains(d.Facts, fact) {
			counts[i] = true
		}
	}
	if len(counts) == 0 {
		return
	}
	why, hint := "always 0: no rule that can fire counts a retry", "add retry: true to the rule that tries again"
	if c.retries() {
		why = "always 0 there: no retry that is counted leads to it"
		hint += ", and let it pass no stable state on the way: one begins the count anew"
	}
	for _, a := range c.asksInVain(counts) {
		c.add(diag.Error, CodeRetriesNotGrown, a.at, a.rule, nil, hint, "in %s, %s asks for %s, which is %s", a.in, a.rule, engine.FactRetries, why)
	}
}

// asks is a guard that asks for something: that of a rule, or of an effect, in a state.
type asks struct {
	at   lifecycle.Place
	rule string
	in   engine.State
}

// asksInVain lists the guards that ask how often something was tried in no state in which there may have been retries, each
// once: an interrupt stands in many states.
func (m *model) asksInVain(counts map[int]bool) []asks {
	grow := m.growing()
	counted := map[string]bool{}
	var all []asks
	for _, v := range m.order {
		for _, w := range v.exits {
			if asksFor(w.When, counts) {
				counted[w.Rule] = counted[w.Rule] || grow[v.Name]
				all = append(all, asks{w.When.At, w.Rule, v.Name})
			}
		}
		for _, w := range v.effects {
			if asksFor(w.When, counts) && !grow[v.Name] {
				all = append(all, asks{w.When.At, w.Effect.Name, v.Name})
			}
		}
	}
	told := map[string]bool{}
	return slices.DeleteFunc(all, func(a asks) bool {
		drop := counted[a.rule] || told[a.rule]
		told[a.rule] = true
		return drop
	})
}

// retries says whether any rule that can fire counts a retry.
func (m *model) retries() bool {
	return slices.ContainsFunc(m.order, func(v *view) bool {
		return slices.ContainsFunc(v.exits, func(w wayOut) bool { return w.Retry && w.leads })
	})
}

// growing is the states in which there may have been retries: those to which rules that count one lead, and those to which
// rules lead from there, up to the next stable state, which begins the count anew.
func (m *model) growing() map[engine.State]bool {
	return m.closure(map[engine.State]bool{}, func(grow map[engine.State]bool, from *view, w *wayOut) (engine.State, bool) {
		return w.To, (w.Retry || grow[from.Name]) && !m.stateOf(w.To).Stable
	})
}

// asksFor says whether a guard uses one of some definitions.
func asksFor(g *lifecycle.Condition, definitions map[int]bool) bool {
	return slices.ContainsFunc(g.Atoms(), func(atom int) bool { return definitions[atom] })
}

// checkForfeits reports rules that clear a mark by which something is lost, though nothing forbids it.
func (c *checker) checkForfeits() {
	told := map[string]bool{}
	for _, v := range c.order {
		for _, w := range v.exits {
			for _, mark := range w.Clears {
				if f, ok := c.words.Forfeits[mark]; ok && !told[w.Rule+mark] {
					told[w.Rule+mark] = true
					c.add(diag.Warning, CodeMarkForfeited, w.At, w.Rule, nil, f.Instead, "%s clears %s: %s", w.Rule, mark, f.Loses)
				}
			}
		}
	}
}
