// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/bdd"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

func haltedBy(cause engine.HaltCause, rule string) func(engine.Decision) bool {
	return func(d engine.Decision) bool { return d.Halt != nil && d.Halt.Cause == cause && d.Halt.Rule == rule }
}

// checkSafety looks for facts on which a safety rule or an invariant halts a decision in the state.
func (c *checker) checkSafety(v *view) {
	report := func(b breach, code string, at lifecycle.Place, rule, halted, what, remedy string) {
		c.addShown(v, b.on, haltedBy(engine.HaltSafety, halted), diag.Error, code, at, rule, remedy+b.rule.Must.Source,
			"in %s, %s where %s forbids it: %s", v.Name, what, b.rule.Rule, b.rule.Doc)
	}
	for _, w := range v.exits {
		for _, b := range w.breaches {
			what := fmt.Sprintf("enter %s", w.To)
			switch {
			case b.leaves:
				what = "leave the state"
			case b.mark != "":
				what = "clear " + b.mark
			}
			report(b, CodeSafetyMove, w.At, w.Rule, w.Rule, w.Rule+" can "+what, "let its guard ask for ")
		}
	}
	for _, s := range v.stays {
		for _, b := range s.breaches {
			report(b, CodeSafetyStay, s.At, string(v.Name), s.Effect.Name, "which has "+s.Effect.Name+", a server can stay",
				"add an exit that is taken wherever this does not hold: ")
		}
	}
	for _, w := range v.effects {
		for _, b := range w.breaches {
			what := w.Effect.Name + " can be wanted"
			if b.mark != "" {
				what += " and would set " + b.mark
			}
			report(b, CodeSafetyEffect, w.At, string(v.Name), w.Effect.Name, what, "let its when, or an exit before it, ask for ")
		}
	}
	for i, on := range v.breaches {
		invariant := c.ast.Invariants[i]
		c.addShown(v, on, haltedBy(engine.HaltInvariant, invariant.Rule), diag.Error, CodeInvariant, invariant.At, invariant.Rule,
			"change the state so that it holds, or the invariant",
			"in %s, the invariant %s can be violated: %s", v.Name, invariant.Rule, invariant.Must.Source)
	}
}

// checkErrors looks for facts on which a guard is an error.
func (c *checker) checkErrors(v *view) {
	report := func(on bdd.Ref, at lifecycle.Place, rule, what string) {
		c.addShown(v, on, haltedBy(engine.HaltGuardError, rule), diag.Warning, CodeGuardError, at, rule,
			"guard against it in the definition, for example x != 0 && y / x > 2",
			"in %s, %s can be an error, and the server would be halted", v.Name, what)
	}
	for _, w := range v.exits {
		report(w.errs, w.At, w.Rule, "the guard of "+w.Rule)
	}
	for _, w := range v.effects {
		report(w.err, w.At, w.Effect.Name, "the when of "+w.Effect.Name)
	}
}

// checkGuards looks for exits that lead nowhere, for guards that decide nothing and for effects that are never wanted.
func (c *checker) checkGuards(v *view) {
	for i := range v.exits {
		c.checkToItself(v, &v.exits[i])
		c.checkExitGuard(v, i)
	}
	for _, w := range v.effects {
		switch {
		case w.When == nil || !c.occurs(v, w.open):
		case !c.occurs(v, w.wants) && !c.occurs(v, w.err):
			c.add(diag.Warning, CodeNeverEnsured, w.At, string(v.Name), nil, "remove it, or ask what was meant",
				"%s never wants %s: where %s holds the state is left", v.Name, w.Effect.Name, w.When.Source)
		case !c.occurs(v, c.Without(w.open, w.when.yes)):
			c.add(diag.Warning, CodeAlwaysTrue, w.When.At, string(v.Name), nil, "leave it out, or ask what was meant",
				"in %s, the when of %s is always true", v.Name, w.Effect.Name)
		}
	}
}

// checkQuarrels looks for effects that undo each other and can be wanted at once.
func (c *checker) checkQuarrels(v *view) {
	for i := range v.effects {
		for j := range v.effects[:i] {
			one, other := &v.effects[j], &v.effects[i]
			if slices.Contains(one.Kind.Undoes, other.Effect.Name) || slices.Contains(other.Kind.Undoes, one.Effect.Name) {
				c.addShown(v, c.And(one.wants, other.wants), func(d engine.Decision) bool { return d.Halt == nil && !d.Moves() },
					diag.Error, CodeQuarrel, other.At, string(v.Name), "let their guards exclude each other",
					"in %s, %s and %s can be wanted at once, and undo each other", v.Name, one.Effect.Name, other.Effect.Name)
			}
		}
	}
}

func (c *checker) checkToItself(v *view, w *wayOut) {
	if w.To != v.Name {
		return
	}
	x := c.exampleIn(v, w.taken, func(d engine.Decision) bool { return d.Rule == w.Rule && !d.Moves() })
	if x == nil {
		return
	}
	c.add(diag.Error, CodeToItself, w.At, w.Rule, x, "lead it to another state, or remove it and let the state ensure what is wanted",
		"in %s, %s leads to %s itself: where it is taken nothing moves, and nothing is ensured either", v.Name, w.Rule, v.Name)
}

// checkExitGuard says of a guard that is true whenever it is asked what it keeps from being reached, if anything.
func (c *checker) checkExitGuard(v *view, i int) {
	w := &v.exits[i]
	come := c.And(w.open, w.due)
	if w.When == nil || w.Interrupt || !c.occurs(v, come) || c.occurs(v, c.Without(come, w.when.yes)) {
		return
	}
	var shadowed []string
	if w.After == nil {
		for _, later := range v.exits[i+1:] {
			shadowed = append(shadowed, later.Rule)
		}
	}
	hint, so := "leave it out, or ask what was meant", ""
	if len(shadowed) > 0 {
		hint, so = "put it last, or tighten the guard", fmt.Sprintf(": %s can never fire", strings.Join(shadowed, ", "))
	}
	c.add(diag.Warning, CodeAlwaysTrue, w.When.At, w.Rule, nil, hint,
		"in %s, the guard of %s is always true where it is asked%s", v.Name, w.Rule, so)
}

// maxOverlaps bounds how many pairs of exits that can hold at once are reported.
const maxOverlaps = 256

// checkOrder reports which exits can hold at once, so that their order decides where a server goes. Interrupts come first
// everywhere, and a deadline without a guard is there for when nothing else holds: of both that is no news.
func (c *checker) checkOrder(v *view) {
	for i := range v.exits {
		first := &v.exits[i]
		if first.Interrupt {
			continue
		}
		for _, second := range v.exits[i+1:] {
			if second.When == nil || second.To == first.To || !c.occurs(v, second.fires) {
				continue
			}
			both := c.And(first.fires, second.due, second.when.yes, c.assumed)
			if !c.occurs(v, both) {
				continue
			}
			c.overlaps++
			if c.overlaps > maxOverlaps {
				continue
			}
			x := c.exampleIn(v, both, func(d engine.Decision) bool {
				return d.Rule == first.Rule || (d.Halt != nil && d.Halt.Rule == first.Rule)
			})
			if x.Confirmed {
				c.add(diag.Info, CodeOrderDecides, second.At, second.Rule, x, "let their guards exclude each other where that is not what you want",
					"in %s, %s (to %s) and %s (to %s) can hold at once, and the first is taken", v.Name, first.Rule, first.To, second.Rule, second.To)
			}
		}
	}
}

// checkRules looks for rules that fire in no state.
func (c *checker) checkRules() {
	fires, seen := map[string]bool{}, map[string]bool{}
	for _, v := range c.order {
		for _, w := range v.exits {
			fires[w.Rule] = fires[w.Rule] || c.occurs(v, w.fires)
		}
	}
	for _, v := range c.order {
		for i := range v.exits {
			w := &v.exits[i]
			if !fires[w.Rule] && !seen[w.Rule] && c.unserved(v, w) {
				seen[w.Rule] = true
				c.tellUnserved(v, w)
			}
		}
	}
	for _, v := range c.order {
		for i := range v.exits {
			w := &v.exits[i]
			if c.outrun(v, w) != nil {
				continue // checkDeadlines reports it
			}
			if fires[w.Rule] || seen[w.Rule] {
				continue
			}
			seen[w.Rule] = true
			c.add(diag.Error, CodeNeverFires, w.At, w.Rule, nil, "remove it, or change its guard or the order",
				"%s never fires: %s", w.Rule, c.why(v, w))
		}
	}
}

// why says of a rule that never fires what keeps it.
func (m *model) why(v *view, w *wayOut) string {
	on := m.And(m.domain, w.due, w.when.yes)
	if on == bdd.False {
		if w.When == nil {
			return "its time never comes"
		}
		return fmt.Sprintf("no facts make %s true", w.When.Source)
	}
	var earlier []string
	for _, x := range v.exits {
		if x.Rule == w.Rule {
			break
		}
		if m.And(on, x.due, x.when.yes) != bdd.False {
			earlier = append(earlier, x.Rule)
		}
	}
	return fmt.Sprintf("where its guard is true, a rule before it is taken (%s)", strings.Join(earlier, ", "))
}

// checkDefinitions looks for definitions that no guard uses.
func (c *checker) checkDefinitions() {
	used := map[int]bool{}
	mark := func(g *lifecycle.Condition) {
		for _, atom := range g.Atoms() {
			used[atom] = true
		}
	}
	for _, v := range c.order {
		for _, w := range v.exits {
			mark(w.When)
		}
		for _, w := range v.effects {
			mark(w.When)
		}
	}
	for _, i := range c.ast.Invariants {
		mark(i.Must)
	}
	for i, d := range c.ast.Definitions {
		if !used[i] {
			c.add(diag.Warning, CodeUnused, d.At, d.Name, nil, "remove it, or use it", "no guard uses the definition %s", d.Name)
		}
	}
}
