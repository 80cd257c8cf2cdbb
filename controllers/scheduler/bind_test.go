// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/selection"
)

func TestALostRaceTakesTheNextWithoutEvaluatingAgain(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.addServer(aServer(name))
	}
	w.addClaim(aClaim("claim"))
	w.deliver(9)
	asked := 0
	w.s.policy = func() (Policy, engine.Revision) { return counting{&asked}, engine.Revision{} }
	// Somebody else changes the best server, and the watch has not shown it yet.
	w.changeServer(w.server("a"), func(s *v1alpha1.Server) { s.Spec.Unclaimable = true })
	w.must(w.pass())
	if got := w.server("b").Spec.ServerClaimRef; got == nil || got.Name != "claim" || asked != 1 {
		t.Errorf("server b has %v after %d evaluations", got, asked)
	}
	if w.server("a").Spec.ServerClaimRef != nil {
		t.Error("the cordoned server was taken")
	}
}

type counting struct{ asked *int }

func (c counting) Select(ctx context.Context, claim selection.Claim, all []*selection.PreparedCandidate, f selection.Fleet) (selection.Result, error) {
	*c.asked++
	return byName{}.Select(ctx, claim, all, f)
}

func TestTheNextClaimSeesWhatTheOneBeforeWasGiven(t *testing.T) {
	w := newWorld(t)
	w.addServer(aServer("a"))
	w.addServer(aServer("b"))
	w.addClaim(aClaim("first"))
	w.addClaim(aClaim("second"))
	w.addClaim(aClaim("third"))
	w.deliver(9)
	w.must(w.pass()) // the watch shows nothing of it
	for name, want := range map[string]string{"a": "first", "b": "second"} {
		if got := w.server(name).Spec.ServerClaimRef; got == nil || got.Name != want {
			t.Errorf("server %s has %v, want %s", name, got, want)
		}
	}
	if v, _ := w.s.Verdict("uid-third"); v.Message != "2 of 2 servers match: claimed 2" {
		t.Errorf("the third claim is told %q", v.Message)
	}
}

func TestAServerReservedForAClaimThatWentIsTakenBackAtOnce(t *testing.T) {
	w := newWorld(t)
	w.addServer(aServer("a", annotated(v1alpha1.ReleasedClaimAnnotation, "former"), annotated(v1alpha1.ReleasedAtAnnotation, "then")))
	w.addClaim(aClaim("claim"))
	w.deliver(9)
	for _, c := range w.claims() {
		w.endClaim(c) // and the watch has not shown it yet
	}
	w.must(w.pass())
	s := w.server("a")
	if s.Spec.ServerClaimRef != nil || len(s.Annotations) != 0 {
		t.Errorf("server a is left with %v %v", s.Spec.ServerClaimRef, s.Annotations)
	}
}

func TestAReservationWhoseAnswerGotLostIsLookedUpBeforeAnythingElse(t *testing.T) {
	w := newWorld(t)
	w.addServer(aServer("a"))
	w.addServer(aServer("b"))
	w.addClaim(aClaim("claim"))
	w.deliver(9)
	w.after = func(client.Object) error { return errors.New("injected: the answer got lost") }
	if w.pass() == nil {
		t.Error("the pass does not say that it failed")
	}
	w.after = nil
	w.must(w.pass()) // the watch shows nothing of it
	if got := w.server("b").Spec.ServerClaimRef; got != nil {
		t.Errorf("a second server was reserved for %v", got)
	}
	if got := w.claims()[0].Spec.ServerRef; got == nil || got.Name != "a" {
		t.Errorf("the claim names %v, want a", got)
	}
}
