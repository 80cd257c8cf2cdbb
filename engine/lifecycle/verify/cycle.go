// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/bdd"
)

// start is the position with the simplest facts on which moves follow each other without end.
func (s *spin) start(forever map[position]bdd.Ref) (position, bool) {
	for _, v := range s.order {
		for n := range s.counts {
			if at := (position{v.Name, n}); forever[at] != bdd.False {
				return at, true
			}
		}
	}
	return position{}, false
}

// follow walks from a position, on the simplest of the facts that are given, until it comes to one, with the same facts, where
// it was before.
func (s *spin) follow(forever map[position]bdd.Ref, at position, on bdd.Ref) ([]*hop, *Counterexample) {
	type visit struct {
		position
		facts string
	}
	seen := map[visit]int{}
	var hops []*hop
	var examples []*Counterexample
	assignment, ok := s.Cheapest(on, s.weights)
	for ok {
		key := visit{at, s.lasting(assignment)}
		if first, known := seen[key]; known {
			return closed(hops[first:], examples[first:])
		}
		seen[key] = len(hops)
		h := s.taken(at, assignment)
		if h == nil {
			break
		}
		hops, examples = append(hops, h), append(examples, s.move(h, at, assignment))
		kept := s.kept(h, at, assignment)
		at = position{h.To, s.retries(h, at.retries)}
		if assignment, ok = s.Cheapest(s.Restrict(s.And(forever[at], s.entered), kept), s.weights); ok {
			for v, value := range kept {
				assignment[v] = value
			}
		}
	}
	return nil, nil
}

// closed is a cycle of moves with its first example, which is confirmed where all are.
func closed(cycle []*hop, examples []*Counterexample) ([]*hop, *Counterexample) {
	x := examples[0]
	for i, h := range cycle {
		x.Confirmed = x.Confirmed && examples[i].Confirmed
		x.Cycle = append(x.Cycle, Step{h.from, h.Rule, h.To})
	}
	return cycle, x
}

// kept is what stays of an assignment over a move: all but what the move changes, with the marks as it leaves them.
func (s *spin) kept(h *hop, at position, assignment []bool) bdd.Fixed {
	ends := s.Holds(h.serves[at.retries], assignment) || s.Holds(h.refused, assignment)
	kept := bdd.Fixed{}
	for v, value := range assignment {
		if !s.volatile[v] {
			kept[v] = value && (!ends || !s.asked[v])
		}
	}
	for v := range s.counts[0] {
		delete(kept, v) // the comparisons of the retries follow from the position
	}
	for v, value := range h.marks {
		kept[v] = value
	}
	return kept
}

// lasting is the part of an assignment that a move does not change by itself.
func (s *spin) lasting(assignment []bool) string {
	text := make([]byte, len(assignment))
	for v, value := range assignment {
		if _, counted := s.counts[0][v]; value && !counted && !s.volatile[v] {
			text[v] = 1
		}
	}
	return string(text)
}

func (s *spin) taken(at position, assignment []bool) *hop {
	for _, h := range s.hops[at.state] {
		if s.Holds(h.fires[at.retries], assignment) {
			return h
		}
	}
	return nil
}

// move has the lifecycle decide on the facts of an assignment, and says whether it makes the move.
func (s *spin) move(h *hop, at position, assignment []bool) *Counterexample {
	assignment = slices.Clone(assignment)
	for v, value := range s.counts[at.retries] {
		assignment[v] = value
	}
	return s.decided(h.fires[at.retries], assignment, at.state, func(d engine.Decision) bool { return d.Moves() && d.Rule == h.Rule })
}

func (s *spin) tell(cycle []*hop, x *Counterexample) {
	h := cycle[0]
	s.add(diag.Error, CodeLivelock, h.At, h.Rule, x, "let one of the guards ask for something that the move before it changes",
		"while nothing outside changes, moves follow each other without end: %s", cycleWords(cycle))
}

// firstMoves and lastMoves are how many moves of a long cycle a message names.
const firstMoves, lastMoves = 6, 2

// cycleWords writes a cycle from its least rule on, so that one cycle has one text.
func cycleWords(cycle []*hop) string {
	least := 0
	for i, h := range cycle {
		if h.Rule < cycle[least].Rule {
			least = i
		}
	}
	way := slices.Concat(cycle[least:], cycle[:least])
	var b strings.Builder
	between := len(way) - firstMoves - lastMoves
	for i, h := range way {
		switch {
		case between < 2 || i < firstMoves || i >= firstMoves+between:
			fmt.Fprintf(&b, "%s -%s-> ", h.from, h.Rule)
		case i == firstMoves:
			fmt.Fprintf(&b, "%s ... %d moves ... ", h.from, between)
		}
	}
	return b.String() + string(way[len(way)-1].To)
}

// forget takes the facts by which exactly this cycle is followed out of its first move, so that others can be found.
func (s *spin) forget(cycle []*hop) {
	forever := s.forever(cycle)
	h := cycle[0]
	for n := range s.counts {
		h.fires[n] = s.Without(h.fires[n], forever[position{h.from, n}])
	}
}
