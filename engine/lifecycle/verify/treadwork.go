// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"maps"
	"slices"

	"github.com/metalaw/metalaw/engine/internal/bdd"
)

// work is one thing that an effect does: it has marks stored first, or changes facts and marks.
type work struct {
	// acts is where it is what is done next, makes what holds then, and changes the variables that it may change.
	acts, makes bdd.Ref
	changes     map[int]bool
	marks       bdd.Fixed
}

// addWork adds what an effect does, once those before it have done theirs. What a safety rule halts does nothing.
func (r *treadmill) addWork(st *stay, w *wanted) {
	kind, _ := r.words.Effect(w.Effect)
	sets, clears := r.marksAsked(w.Sets), r.marksAsked(w.Clears) // what nobody asks for changes nothing
	first, remembered := r.marksAfter(nil, kind.Marks), r.marksAfter(clears, sets)
	makes, needs := r.anatomy.Makes[w.Effect], r.anatomy.Needs[w.Effect]
	if makes == nil && len(first) == 0 && len(remembered) == 0 {
		return
	}
	atOnce := func(f bdd.Ref) bdd.Ref { return r.Exists(r.And(r.calm(f), r.atOnce), r.age) }
	halted := atOnce(w.halted)
	wants := r.Without(atOnce(w.wants), halted)
	if len(first) > 0 {
		r.addStep(st, r.Without(wants, r.fixed(first)), work{makes: bdd.True, changes: r.variablesOf(nil), marks: first})
	}
	made, can := bdd.True, bdd.True
	if makes != nil {
		made = r.calm(r.outcome(makes, st.Name).yes)
	}
	if needs != nil {
		can = r.calm(r.outcome(needs, st.Name).yes)
	}
	if makes != nil || len(remembered) > 0 {
		change := work{makes: made, changes: r.variablesOf(kind.Change.Facts), marks: r.marksAfter(clears, slices.Concat(sets, kind.Earns))}
		r.addStep(st, r.Without(wants, r.And(made, r.fixed(remembered))), change, can)
	}
	st.done = r.Without(st.done, halted)
}

// addStep adds what is done where it is left to do, as far as it can be.
func (r *treadmill) addStep(st *stay, left bdd.Ref, w work, can ...bdd.Ref) {
	w.acts = r.And(st.done, left, r.And(can...))
	st.done = r.Without(st.done, left)
	st.works = append(st.works, w)
}

// fixed holds where variables are as they are fixed.
func (r *treadmill) fixed(to bdd.Fixed) bdd.Ref {
	f := bdd.True
	for _, v := range slices.Sorted(maps.Keys(to)) {
		is := r.Var(v)
		if !to[v] {
			is = r.Not(is)
		}
		f = r.And(f, is)
	}
	return f
}

func (r *treadmill) variablesOf(facts []string) map[int]bool {
	changed := map[int]bool{}
	for _, name := range facts {
		if i, ok := r.words.Index(name); ok {
			changed[i] = true
		}
	}
	return r.touched(changed)
}
