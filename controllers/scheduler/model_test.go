// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestClaimsAndServersStayOneToOneWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { play(t, asks, 0) })
}

func TestGangsGetTheirServersTogetherWhateverHappens(t *testing.T) {
	var told story
	rapid.Check(t, func(t *rapid.T) { told.add(play(t, asksOfGangs, 3)) })
	told.check(t)
}

// asks are the placements of the model's claims.
var asks = []string{
	"", `where: server.rack == "r1"`, ofTwo, ofThree, ofThree, "where: server.rack == \"r2\"\ngang: {name: db, size: 3}",
	"spread: {key: rack}\n" + ofPair, "spread: {key: rack, claims: {}}",
}

// asksOfGangs leave hardly anything to claims that are of no gang.
var asksOfGangs = []string{ofThree, ofTwo, ofPair, "spread: {key: rack}\n" + ofPair, ""}

const (
	ofTwo   = "gang: {name: db, size: 2}"
	ofThree = "gang: {name: db, size: 3}"
	ofPair  = "gang: {name: pair, size: 2}"
)

// story is what a model came by, over all of its runs: one that never meets what it is about proves nothing.
type story struct {
	runs int
	// bound, parted and undone count the runs in which a gang was bound as a whole, in which a pass ended while only some members
	// had a server, and in which a server was taken back from a member.
	bound, parted, undone int
}

func (s *story) add(w *world) {
	s.runs++
	for _, one := range []struct {
		n   *int
		met bool
	}{{&s.bound, w.met.bound}, {&s.parted, w.met.parted}, {&s.undone, w.met.undone}} {
		if one.met {
			*one.n++
		}
	}
}

// check wants each in one run of forty at least; a third of them, or a sixth, is usual.
func (s *story) check(t *testing.T) {
	t.Helper()
	if least := s.runs / 40; s.bound < least || s.parted < least || s.undone < least {
		t.Errorf("of %d runs a gang was bound in %d, reserved in part in %d, and undone in %d: the model does too little of interest",
			s.runs, s.bound, s.parted, s.undone)
	}
}

func TestWhatRestsIsComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.gate = newGate()
		w.gate.choose = func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "worker") }
		w.restart()
		servers, claims := rapid.IntRange(0, 5).Draw(t, "servers"), rapid.IntRange(0, 5).Draw(t, "claims")
		for i := range servers {
			w.addServer(aServer(fmt.Sprintf("s%d", i)))
		}
		for i := range claims {
			w.addClaim(aClaim(fmt.Sprintf("c%d", i)))
		}
		faults := rapid.IntRange(0, 4).Draw(t, "faults")
		w.after = func(client.Object) error {
			if faults--; faults >= 0 {
				return errors.New("injected: the answer got lost")
			}
			return nil
		}
		w.deliver(rapid.IntRange(0, 10).Draw(t, "events"))
		for range 5 {
			_ = w.pass()
			w.check()
			w.deliver(rapid.IntRange(0, 3).Draw(t, "events"))
			if rapid.Bool().Draw(t, "crash") {
				w.restart()
			}
			if all := w.claims(); len(all) > 0 && rapid.Bool().Draw(t, "end") {
				w.endClaim(all[0])
			}
		}
		w.settle()
		w.check()
		w.checkRest()
	})
}
