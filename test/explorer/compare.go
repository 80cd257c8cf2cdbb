// SPDX-License-Identifier: Apache-2.0

package explorer

import (
	"slices"
	"strings"
	"time"
)

// Difference tells of the first world, of those that an exploration of one lifecycle reached, in which another of the same
// states wants something else. It is empty where there is none: then no history tells the two apart.
func (r Result) Difference(of, other *Machine) string {
	for i := range of.states {
		if was, is := of.states[i].operations, other.states[i].operations; !slices.Equal(was, is) {
			return "in " + of.states[i].name + " it takes the operations [" + strings.Join(is, ", ") + "]"
		}
	}
	for i := range r.worlds {
		w := r.worlds[i]
		was := of.words(&w)
		w.Age = other.ageOf(of.ages[w.Age])
		if is := other.words(&w); is != was {
			return "in " + of.states[w.State].name + " it " + is + ", where the original " + was
		}
	}
	return ""
}

// ageOf is the place of the last of the lifecycle's own deadlines that has passed at an age.
func (m *Machine) ageOf(age time.Duration) uint8 {
	place, exact := slices.BinarySearch(m.ages, age)
	if !exact {
		place--
	}
	return uint8(place)
}

// words tells what a lifecycle wants in a world.
func (m *Machine) words(w *World) string {
	d := m.decide(w, nil)
	switch {
	case d.halted:
		return "halts"
	case d.move != nil:
		return "moves by " + d.move.rule + " to " + m.states[d.move.to].name + m.markWords(" clearing ", d.move.clears) +
			m.markWords(" setting ", m.states[d.move.to].marks)
	case len(d.effects) == 0:
		return "wants nothing"
	default:
		return "wants " + strings.Join(d.effects, ", ")
	}
}

func (m *Machine) markWords(what string, bits uint8) string {
	var names []string
	for name, b := range m.markBits {
		if bits&b != 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return what + strings.Join(names, ", ")
}
