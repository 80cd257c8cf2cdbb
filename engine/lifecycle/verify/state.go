// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/bdd"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

// model is a lifecycle as decisions walk through it: for each state, and over all facts.
type model struct {
	*encoder
	order []*view
	views map[engine.State]*view
	// paths is a shortest way from the initial state to each that a rule leads to; reached holds more: the states into which
	// servers come by migration or from another operator, and where rules lead from there.
	paths   map[engine.State][]Step
	reached map[engine.State]bool
}

// newModel looks at every state of a lifecycle.
func newModel(l *lifecycle.Lifecycle, limit int, assumed []*lifecycle.Expression) *model {
	m := &model{encoder: newEncoder(l, limit, assumed), views: map[engine.State]*view{}}
	for _, st := range m.ast.States {
		v := m.look(st)
		m.order = append(m.order, v)
		m.views[v.Name] = v
	}
	m.findPaths()
	return m
}

// view is a state as a decision walks through it: for each step, on which facts it is come to and how it ends. The steps say
// nothing of what can occur: what they ask about is little, and what can occur concerns all facts, so that functions of both
// are many times as large.
type view struct {
	*lifecycle.State
	// possible is what can occur in the state, and served what is left of it without the operations that the state does not
	// accept. The operator begins no such operation there; one that was begun elsewhere may still stand when a server at rest
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
	*lifecycle.Ensured
	breaches []breach
	// halted is all of them.
	halted bdd.Ref
}

// wayOut is one exit or interrupt.
type wayOut struct {
	*lifecycle.Exit
	// due holds once its time has come, and when is its guard.
	due  bdd.Ref
	when outcome
	// open holds where it is come to, fires where it is taken, and errs where its guard cannot be evaluated.
	open, fires, errs bdd.Ref
	// breaches are where a safety rule forbids the move, by rule in the order in which they are asked.
	breaches []breach
	// taken is where it is taken and none forbids it.
	taken bdd.Ref
	// leads says that it can take a server to another state.
	leads bool
}

// wanted is one effect of a state.
type wanted struct {
	*lifecycle.Ensured
	when             outcome
	open, wants, err bdd.Ref
	breaches         []breach
	// halted is where one of them halts, also where that is what is wanted.
	halted bdd.Ref
}

// breach is where one safety rule halts a decision.
type breach struct {
	rule *lifecycle.Requirement
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
func (m *model) condition(g *lifecycle.Condition, a asked) outcome {
	if g == nil {
		return m.constant(true)
	}
	switch g.Op { //nolint:exhaustive // those with kids follow below
	case lifecycle.IfAtom:
		return m.outcome(m.ast.Definitions[g.Atom], a.state)
	case lifecycle.IfConst:
		return m.constant(g.Value)
	case lifecycle.IfState:
		return m.constant(g.Word == string(a.state))
	case lifecycle.IfEnsuring:
		yes := a.ensuring(g.Word)
		return outcome{yes, m.Not(yes)}
	case lifecycle.IfActing:
		yes := a.acting()
		return outcome{yes, m.Not(yes)}
	}
	kids := make([]outcome, len(g.Kids))
	for i, kid := range g.Kids {
		kids[i] = m.condition(kid, a)
	}
	if g.Op == lifecycle.IfNot {
		return outcome{kids[0].no, kids[0].yes}
	}
	if g.Op == lifecycle.IfAnd {
		return m.all(kids)
	}
	return m.any(kids)
}

// look walks through a state as a decision does.
func (m *model) look(st *lifecycle.State) *view {
	v := &view{State: st, possible: m.inState(st)}
	v.served = m.Without(v.possible, m.unlisted(st))
	open := bdd.True
	for _, x := range st.Exits {
		w := m.lookAtExit(v, x, open)
		open = m.And(open, m.Or(m.Not(w.due), w.when.no))
		v.exits = append(v.exits, w)
	}
	for _, s := range st.Stays {
		breaches, left := m.broken(open, s.Requirements, v.Name, nil, breach{})
		v.stays = append(v.stays, staying{Ensured: s.Ensured, breaches: breaches, halted: m.Without(open, left)})
		open = left
	}
	for _, e := range st.Ensure {
		w := wanted{Ensured: e, when: m.condition(e.When, asked{state: st.Name}), open: open}
		w.wants = m.And(open, w.when.yes)
		w.err = m.Without(m.Without(open, w.when.yes), w.when.no)
		w.breaches, w.halted = m.effectBreaches(e, st.Name, w.wants)
		open = m.Without(m.Without(open, w.err), w.halted)
		v.effects = append(v.effects, w)
	}
	m.lookAtInvariants(v, open)
	return v
}

// occurs says whether a function of facts can hold in a state to which only what it accepts is asked.
func (m *model) occurs(v *view, f bdd.Ref) bool { return m.Meet(v.served, f) }

// inState is what can occur in a state: nothing that only an effect brings which the state does not have.
func (m *model) inState(st *lifecycle.State) bdd.Ref {
	domain := m.domain
	for i := range m.words.Effects {
		effect := m.words.Effects[i].Name
		has := slices.ContainsFunc(st.Ensure, func(e *lifecycle.Ensured) bool { return e.Effect.Name == effect })
		if brings := m.safety.Brings[effect]; brings != nil && !has {
			domain = m.Without(domain, m.outcome(brings, st.Name).yes)
		}
	}
	return domain
}

func (m *model) lookAtExit(v *view, x *lifecycle.Exit, open bdd.Ref) wayOut {
	w := wayOut{Exit: x, due: bdd.True, when: m.condition(x.When, asked{state: v.Name}), open: open}
	if x.After != nil {
		w.due = m.encode(m.deadlines[x.After], v.Name).yes
	}
	come := m.And(open, w.due)
	w.fires = m.And(come, w.when.yes)
	w.errs = m.Without(m.Without(come, w.when.yes), w.when.no)
	w.taken = w.fires
	ask := func(all []*lifecycle.Requirement, moved bdd.Fixed, like breach) {
		breaches, left := m.broken(w.taken, all, v.Name, moved, like)
		w.breaches, w.taken = append(w.breaches, breaches...), left
	}
	ask(m.safety.Leave[v.Name], nil, breach{leaves: true})
	for _, mark := range x.Clears {
		ask(m.safety.Clear[mark], nil, breach{mark: mark})
	}
	// The marks are those after the move, and the state is still the one that is left.
	moved := m.marksAfter(x.Clears, m.stateOf(x.To).Marks)
	ask(m.safety.Enter[x.To], moved, breach{})
	ask(m.safety.Arrive[x.To], moved, breach{})
	w.leads = w.To != v.Name && m.occurs(v, w.taken)
	return w
}

// broken is where each of some safety rules halts, each like the given breach, and where all hold. The marks that moved names are
// as it fixes them.
func (m *model) broken(left bdd.Ref, all []*lifecycle.Requirement, state engine.State, moved bdd.Fixed, like breach) ([]breach, bdd.Ref) {
	var breaches []breach
	for _, r := range all {
		holds := m.Restrict(m.outcome(r.Must, state).yes, moved)
		like.rule, like.on = r, m.Without(m.Without(left, holds), m.halts(r, state))
		breaches, left = append(breaches, like), m.And(left, holds)
	}
	return breaches, left
}

func (m *model) stateOf(name engine.State) *lifecycle.State {
	for _, st := range m.ast.States {
		if st.Name == name {
			return st
		}
	}
	return &lifecycle.State{}
}

// halts is where a halt by a safety rule is what is wanted.
func (m *model) halts(r *lifecycle.Requirement, state engine.State) bdd.Ref {
	if r.Halts == nil {
		return bdd.False
	}
	return m.outcome(r.Halts, state).yes
}

// marksAfter fixes the marks that a move takes away and sets; one that it does both to is set.
func (m *model) marksAfter(clears, sets []string) bdd.Fixed {
	after := bdd.Fixed{}
	for _, mark := range clears {
		p := m.primitives[m.mark(mark).primitive]
		after[p.variable] = p.flipped
	}
	for _, mark := range sets {
		p := m.primitives[m.mark(mark).primitive]
		after[p.variable] = !p.flipped
	}
	return after
}

// effectBreaches is where safety rules forbid an effect: those of the effect, and those of the marks that it sets where they
// are not stored yet. Where it is open whether a rule will hold, the effect waits instead.
func (m *model) effectBreaches(e *lifecycle.Ensured, state engine.State, wants bdd.Ref) (all []breach, halted bdd.Ref) {
	left := wants
	ask := func(requirements []*lifecycle.Requirement, mark string, where bdd.Ref) {
		for _, r := range requirements {
			must := m.outcome(r.Must, state)
			holds := must.yes
			if r.Awaits != nil {
				holds = m.Or(holds, m.And(must.no, m.outcome(r.Awaits, state).yes))
			}
			broken := m.Without(m.And(left, where), holds)
			all = append(all, breach{rule: r, mark: mark, on: m.Without(broken, m.halts(r, state))})
			left = m.Without(left, broken)
		}
	}
	ask(m.safety.Effect[e.Effect.Name], "", bdd.True)
	earns := bdd.True
	if where := m.safety.EarnsWhere[e.Effect.Name]; where != nil {
		earns = m.outcome(where, state).yes
	}
	for _, mark := range m.safety.Marks[e.Effect.Name] {
		stored := m.encode(m.mark(mark), state).yes
		ask(m.safety.Set[mark], mark, m.Without(earns, stored))
	}
	return all, m.Without(wants, left)
}

func (m *model) lookAtInvariants(v *view, open bdd.Ref) {
	among := func(pick func(*wanted) bool) bdd.Ref {
		some := bdd.False
		for i := range v.effects {
			if pick(&v.effects[i]) {
				some = m.Or(some, v.effects[i].when.yes)
			}
		}
		return some
	}
	a := asked{state: v.Name,
		ensuring: func(effect string) bdd.Ref { return among(func(w *wanted) bool { return w.Effect.Name == effect }) },
		acting:   func() bdd.Ref { return among(func(w *wanted) bool { return w.Kind.Touches }) },
	}
	for _, i := range m.ast.Invariants {
		holds := m.condition(i.Must, a).yes
		v.breaches = append(v.breaches, m.Without(open, holds))
		open = m.And(open, holds)
	}
}
