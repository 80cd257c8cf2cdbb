// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"maps"
	"slices"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/bdd"
)

// checkDestinations looks for rules by which an operation leads elsewhere than it has to, or nowhere. The move ends the
// operation, so that no later rule could distinguish a server that is on its way.
func (s *spin) checkDestinations() {
	for _, operation := range slices.Sorted(maps.Keys(s.words.Destinations)) {
		to := s.words.Destinations[operation]
		asked, nothing := s.And(s.askedFor(operation), s.assumed), bdd.Fixed{}
		for v := range s.asked {
			nothing[v] = false
		}
		for _, v := range s.order {
			// Facts that occur only with an operation do not show what the rule does without one: the rule serves it there.
			lone := s.Without(v.possible, s.Restrict(v.possible, nothing))
			for i := range v.exits {
				w := &v.exits[i]
				if w.To == to {
					continue
				}
				served := s.And(w.taken, asked, s.Or(lone, s.Not(s.Restrict(w.taken, nothing))))
				x := s.exampleIn(v, served, func(d engine.Decision) bool { return d.Halt == nil && d.Rule == w.Rule })
				if x == nil {
					continue
				}
				s.add(diag.Error, CodeDestination, w.At, w.Rule, x,
					"name the state "+string(to)+", or lead the rule there",
					"in %s, %s serves the operation %s and leads to %s; that operation is for the state %s, which is known by its name",
					v.Name, w.Rule, operation, w.To, to)
			}
		}
	}
}
