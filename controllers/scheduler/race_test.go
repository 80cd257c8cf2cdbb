// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// TestClaimsThatEndWhileManyAreBound has real workers, a watch and claims that end run beside each other; the race detector looks on.
func TestClaimsThatEndWhileManyAreBound(t *testing.T) {
	w := newWorld(t)
	w.s.binder.launch = func(work func()) { go work() }
	const n = 60
	for i := range n {
		w.addServer(aServer(fmt.Sprintf("s%02d", i)))
		w.addClaim(aClaim(fmt.Sprintf("c%02d", i)))
	}
	w.deliver(2 * n)
	var others sync.WaitGroup
	others.Go(func() { // every third claim ends; what its finalizer finds then is all that there will ever be
		for i := 0; i < n; i += 3 {
			c := aClaim(fmt.Sprintf("c%02d", i))
			err := w.s.WithoutBinding(c.UID, func() error { return w.release(c) })
			if err != nil {
				t.Error(err)
			}
		}
	})
	others.Go(func() { // the watch shows other servers
		for i := range n {
			w.s.serverChanged(w.s.fleet.Saw(aServer(fmt.Sprintf("late%02d", i), labelled("rack", "1"), inState("Cleanup"))))
		}
	})
	if err := w.pass(); err != nil {
		t.Error(err)
	}
	others.Wait()
	w.check()
	for i, c := range w.claims() {
		for _, s := range w.servers() {
			if i%3 == 0 && policies.Bound(s, c) {
				t.Errorf("server %s is bound to claim %s, which has ended", s.Name, c.Name)
			}
			if ref := s.Spec.ServerClaimRef; i%3 == 0 && ref != nil && ref.Name == c.Name {
				t.Errorf("server %s was written for claim %s after its end", s.Name, c.Name)
			}
		}
		if i%3 != 0 && c.Spec.ServerRef == nil {
			t.Errorf("claim %s has no server", c.Name)
		}
	}
}

// release does what the finalizer of a claim does: it finds the servers that are written for it, uncached, and takes them back.
func (w *world) release(c *v1alpha1.ServerClaim) error {
	for _, s := range w.servers() {
		if ref := s.Spec.ServerClaimRef; ref == nil || ref.Name != c.Name {
			continue
		}
		ForgetBinding(s)
		if err := w.api.Update(context.Background(), s); err != nil {
			return err
		}
	}
	return nil
}

// TestGangsOfWhichMembersEndWhileTheyAreBound has whole gangs written by real workers while some of their members end.
func TestGangsOfWhichMembersEndWhileTheyAreBound(t *testing.T) {
	w := newWorld(t)
	w.s.binder.launch, w.s.binder.fork = func(work func()) { go work() }, sideBySide
	const gangs = 12
	for i := range 3 * gangs {
		w.addServer(aServer(fmt.Sprintf("s%02d", i)))
		w.addClaim(aClaim(fmt.Sprintf("c%02d", i), placed(fmt.Sprintf("gang: {name: g%02d, size: 3}", i/3))))
	}
	w.deliver(6 * gangs)
	var others sync.WaitGroup
	others.Go(func() { // one member of every second gang ends
		for i := 0; i < 3*gangs; i += 6 {
			c := aClaim(fmt.Sprintf("c%02d", i))
			if err := w.s.WithoutBinding(c.UID, func() error { return w.release(c) }); err != nil {
				t.Error(err)
			}
		}
	})
	if err := w.pass(); err != nil {
		t.Error(err)
	}
	others.Wait()
	w.check()
	for i, c := range w.claims() {
		whole := w.claims()[i/3*3+1].Spec.ServerRef != nil
		if i%3 == 0 {
			continue // it may have ended before or after
		}
		if (c.Spec.ServerRef != nil) != whole || i/3%2 == 1 && !whole {
			t.Errorf("claim %s names %v, and another of its gang does not", c.Name, c.Spec.ServerRef)
		}
	}
}
