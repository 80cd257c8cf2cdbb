// SPDX-License-Identifier: Apache-2.0

package explorer

// decision is what a lifecycle wants in one world: a move, or effects in order.
type decision struct {
	move    *exit
	effects []string
	halted  bool
}

const maxAtoms = 128

// evaluation remembers what the definitions said in one decision.
type evaluation struct {
	m      *Machine
	read   reading
	said   [maxAtoms]truth
	failed bool
}

func (e *evaluation) atom(i int) bool {
	if e.said[i] == unasked {
		e.said[i] = e.m.atoms[i].ask(e.m, &e.read)
	}
	e.failed = e.failed || e.said[i] == failed
	return e.said[i] == yes
}

// decide takes the first way out that is open; where there is none, it lists what must hold.
func (m *Machine) decide(w *World, effects []string) decision {
	e := &m.evaluation
	*e = evaluation{m: m, read: m.read(w)}
	s := &m.states[w.State]
	for i := range s.exits {
		x := &s.exits[i]
		if x.after > m.ages[w.Age] {
			continue
		}
		open := x.when.holds(e)
		if e.failed {
			return decision{halted: true}
		}
		if open {
			return decision{move: x}
		}
	}
	effects = effects[:0]
	for i := range s.ensure {
		if s.ensure[i].when.holds(e) {
			effects = append(effects, s.ensure[i].effect)
		}
		if e.failed {
			return decision{halted: true}
		}
	}
	return decision{effects: effects}
}
