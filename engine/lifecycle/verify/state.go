// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/bdd"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// view is a state as a decision walks through it: for each step, on which facts it is come to and how it ends. The steps say
// nothing of what can occur: what they ask about is little, and what can occur concerns all facts, so that functions of both
// are many times as large.
type view struct {
	*lifecycle.StateAnatomy
	// possible is what can occur in the state, and served what is left of it without the operations that the state does not
	// accept. Nobody gets such an operation begun there; one that was begun elsewhere may still stand when a server at rest
	// adopts another revision, so that nothing unsafe may come of it.
	possible, served bdd.Ref
	exits            []wayOut
	effects          []wanted
	// breaches are, per invariant, the facts on which it is the one that halts.
	breaches []bdd.Ref
	// stays are where a safety rule of an effect that the state has forbids to stay, though no exit fires.
	stays []staying
}

// staying is where safety rules forbid to stay because of an effect.
type staying struct {
	*lifecycle.EnsureAnatomy
	breaches []breach
	// halted is all of them.
	halted bdd.Ref
}

// wayOut is one exit or interrupt.
type wayOut struct {
	*lifecycle.ExitAnatomy
	// due holds once its time has come, and when is its guard.
	due  bdd.Ref
	when outcome
	// open holds where it is come to, fires where it is taken, and errs where its guard cannot be evaluated.
	open, fires, errs bdd.Ref
	// breaches are where a safety rule forbids the move, by rule in the order in which they are asked.
	breaches []breach
	// breached is all of them, and taken is where it is taken and none forbids it.
	breached, taken bdd.Ref
	// leads says that it can take a server to another state.
	leads bool
}

// wanted is one effect of a state.
type wanted struct {
	*lifecycle.EnsureAnatomy
	when             outcome
	open, wants, err bdd.Ref
	breaches         []breach
	// halted is where one of them halts, also where that is what is wanted.
	halted bdd.Ref
}

// breach is where one safety rule halts a decision.
type breach struct {
	rule *lifecycle.RequirementAnatomy
	mark string
	// leaves says that the rule is of the state that a move leaves.
	leaves bool
	on     bdd.Ref
}

// asked is what an invariant may ask besides definitions.
type asked struct {
	state    engine.State
	ensuring func(effect string) bdd.Ref
	acting   func() bdd.Ref
}

// condition encodes a guard.
func (c *checker) condition(g *lifecycle.Condition, a asked) outcome {
	if g == nil {
		return c.constant(true)
	}
	switch g.Op { //nolint:exhaustive // those with kids follow below
	case lifecycle.IfAtom:
		return c.outcome(&c.anatomy.Definitions[g.Atom], a.state)
	case lifecycle.IfConst:
		return c.constant(g.Value)
	case lifecycle.IfState:
		return c.constant(g.Word == string(a.state))
	case lifecycle.IfEnsuring:
		yes := a.ensuring(g.Word)
		return outcome{yes, c.Not(yes)}
	case lifecycle.IfActing:
		yes := a.acting()
		return outcome{yes, c.Not(yes)}
	}
	kids := make([]outcome, len(g.Kids))
	for i, kid := range g.Kids {
		kids[i] = c.condition(kid, a)
	}
	if g.Op == lifecycle.IfNot {
		return outcome{kids[0].no, kids[0].yes}
	}
	if g.Op == lifecycle.IfAnd {
		return c.all(kids)
	}
	return c.any(kids)
}

// look walks through a state as a decision does.
func (c *checker) look(st *lifecycle.StateAnatomy) *view {
	v := &view{StateAnatomy: st, possible: c.inState(st)}
	v.served = c.Without(v.possible, c.unlisted(st))
	open := bdd.True
	for i := range st.Exits {
		w := c.lookAtExit(v, &st.Exits[i], open)
		open = c.And(open, c.Or(c.Not(w.due), w.when.no))
		v.exits = append(v.exits, w)
	}
	open = c.lookAtStaying(v, open)
	for i := range st.Ensure {
		e := &st.Ensure[i]
		w := wanted{EnsureAnatomy: e, when: c.condition(e.When, asked{state: st.Name}), open: open}
		w.wants = c.And(open, w.when.yes)
		w.err = c.Without(c.Without(open, w.when.yes), w.when.no)
		w.breaches, w.halted = c.effectBreaches(e, st.Name, w.wants)
		open = c.Without(c.Without(open, w.err), w.halted)
		v.effects = append(v.effects, w)
	}
	c.lookAtInvariants(v, open)
	return v
}

// occurs says whether a function of facts can hold in a state to which only what it accepts is asked.
func (c *checker) occurs(v *view, f bdd.Ref) bool { return c.Meet(v.served, f) }

// inState is what can occur in a state: nothing that only an effect brings which the state does not have.
func (c *checker) inState(st *lifecycle.StateAnatomy) bdd.Ref {
	domain := c.domain
	for i := range c.words.Effects {
		effect := c.words.Effects[i].Name
		has := slices.ContainsFunc(st.Ensure, func(e lifecycle.EnsureAnatomy) bool { return e.Effect == effect })
		if brings := c.anatomy.Brings[effect]; brings != nil && !has {
			domain = c.Without(domain, c.outcome(brings, st.Name).yes)
		}
	}
	return domain
}

func (c *checker) lookAtExit(v *view, x *lifecycle.ExitAnatomy, open bdd.Ref) wayOut {
	w := wayOut{ExitAnatomy: x, due: bdd.True, when: c.condition(x.When, asked{state: v.Name}), open: open}
	if x.After != nil {
		w.due = c.encode(c.deadlines[keyOf(x.After)], v.Name).yes
	}
	come := c.And(open, w.due)
	w.fires = c.And(come, w.when.yes)
	w.errs = c.Without(c.Without(come, w.when.yes), w.when.no)
	left := w.fires
	ask := func(all []lifecycle.RequirementAnatomy, b breach) {
		for i := range all {
			holds := c.outcome(all[i].Must, v.Name).yes
			b.rule, b.on = &all[i], c.Without(c.Without(left, holds), c.halts(&all[i], v.Name))
			w.breaches = append(w.breaches, b)
			left = c.And(left, holds)
		}
	}
	ask(c.anatomy.Leave[v.Name], breach{leaves: true})
	for _, mark := range x.Clears {
		ask(c.anatomy.Clear[mark], breach{mark: mark})
	}
	to := c.stateOf(x.To)
	all := slices.Concat(c.anatomy.Enter[x.To], c.anatomy.Arrive[x.To])
	for i := range all {
		// The marks are those after the move, and the state is still the one that is left.
		holds := c.Restrict(c.outcome(all[i].Must, v.Name).yes, c.marksAfter(x.Clears, to.Marks))
		w.breaches = append(w.breaches, breach{rule: &all[i], on: c.Without(c.Without(left, holds), c.halts(&all[i], v.Name))})
		left = c.And(left, holds)
	}
	w.breached, w.taken = c.Without(w.fires, left), left
	w.leads = w.To != v.Name && c.occurs(v, w.taken)
	return w
}

// lookAtStaying looks at what must hold to stay, for each effect that the state has, and returns where it all does.
func (c *checker) lookAtStaying(v *view, open bdd.Ref) bdd.Ref {
	seen := map[string]bool{}
	for i := range v.Ensure {
		e := &v.Ensure[i]
		all := c.anatomy.Stays[e.Effect]
		if len(all) == 0 || seen[e.Effect] {
			continue
		}
		seen[e.Effect] = true
		left, s := open, staying{EnsureAnatomy: e}
		for k := range all {
			holds := c.outcome(all[k].Must, v.Name).yes
			s.breaches = append(s.breaches, breach{rule: &all[k], on: c.Without(c.Without(left, holds), c.halts(&all[k], v.Name))})
			left = c.And(left, holds)
		}
		s.halted = c.Without(open, left)
		v.stays, open = append(v.stays, s), left
	}
	return open
}

func (c *checker) stateOf(name engine.State) *lifecycle.StateAnatomy {
	for i := range c.anatomy.States {
		if c.anatomy.States[i].Name == name {
			return &c.anatomy.States[i]
		}
	}
	return &lifecycle.StateAnatomy{}
}

// halts is where a halt by a safety rule is what is wanted.
func (c *checker) halts(r *lifecycle.RequirementAnatomy, state engine.State) bdd.Ref {
	if r.Halts == nil {
		return bdd.False
	}
	return c.outcome(r.Halts, state).yes
}

// marksAfter fixes the marks that a move takes away and sets; one that it does both to is set.
func (c *checker) marksAfter(clears, sets []string) bdd.Fixed {
	after := bdd.Fixed{}
	for _, mark := range clears {
		p := c.primitives[c.mark(mark).primitive]
		after[p.variable] = p.flipped
	}
	for _, mark := range sets {
		p := c.primitives[c.mark(mark).primitive]
		after[p.variable] = !p.flipped
	}
	return after
}

// effectBreaches is where safety rules forbid an effect: those of the effect, and those of the marks that it sets where they
// are not stored yet. Where it is open whether a rule will hold, the effect waits instead.
func (c *checker) effectBreaches(e *lifecycle.EnsureAnatomy, state engine.State, wants bdd.Ref) (all []breach, halted bdd.Ref) {
	left := wants
	ask := func(requirements []lifecycle.RequirementAnatomy, mark string, where bdd.Ref) {
		for i := range requirements {
			r := &requirements[i]
			must := c.outcome(r.Must, state)
			holds := must.yes
			if r.Awaits != nil {
				holds = c.Or(holds, c.And(must.no, c.outcome(r.Awaits, state).yes))
			}
			broken := c.Without(c.And(left, where), holds)
			all = append(all, breach{rule: r, mark: mark, on: c.Without(broken, c.halts(r, state))})
			left = c.Without(left, broken)
		}
	}
	ask(c.anatomy.Effect[e.Effect], "", bdd.True)
	for _, mark := range e.Marks {
		stored := c.encode(c.mark(mark), state).yes
		ask(c.anatomy.Set[mark], mark, c.Not(stored))
	}
	return all, c.Without(wants, left)
}

func (c *checker) lookAtInvariants(v *view, open bdd.Ref) {
	among := func(pick func(*wanted) bool) bdd.Ref {
		some := bdd.False
		for i := range v.effects {
			if pick(&v.effects[i]) {
				some = c.Or(some, v.effects[i].when.yes)
			}
		}
		return some
	}
	a := asked{state: v.Name,
		ensuring: func(effect string) bdd.Ref { return among(func(w *wanted) bool { return w.Effect == effect }) },
		acting:   func() bdd.Ref { return among(func(w *wanted) bool { return w.Touches }) },
	}
	for _, i := range c.anatomy.Invariants {
		holds := c.condition(i.Must, a).yes
		v.breaches = append(v.breaches, c.Without(open, holds))
		open = c.And(open, holds)
	}
}
