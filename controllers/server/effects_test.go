// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	"github.com/metalaw/metalaw/engine"
)

func TestNothingIsAppliedForADecisionThatMovesOrHalts(t *testing.T) {
	effects := []engine.Effect{{Name: "Unknown"}}
	for name, c := range map[string]struct {
		decision engine.Decision
		applied  bool
	}{
		"a state that is kept": {engine.Decision{From: "Available", To: "Available", Effects: effects}, true},
		"a halt":               {engine.Decision{From: "Available", To: "Available", Effects: effects, Halt: &engine.Halt{}}, false},
		"a move":               {engine.Decision{From: "Available", To: "Reserved", Effects: effects}, false},
	} {
		t.Run(name, func(t *testing.T) {
			outcome := newScope(t, "Available").applyEffects(t.Context(), c.decision)
			if applied := !outcome.Settled(); applied != c.applied {
				t.Errorf("applied %t", applied)
			}
		})
	}
}
