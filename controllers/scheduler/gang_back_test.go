// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/policies"
)

// onlyServer has something happen to the writes of one server.
func onlyServer(name string, f func(*v1alpha1.Server) error) func(client.Object) error {
	return func(o client.Object) error {
		if s, ok := o.(*v1alpha1.Server); ok && s.Name == name {
			return f(s)
		}
		return nil
	}
}

// end ends a claim by its name.
func (w *world) end(name string) {
	for _, c := range w.claims() {
		if c.Name == name {
			w.endClaim(c)
		}
	}
}

// rest runs the passes that the scheduler asks for by itself, and no others.
func (w *world) rest() {
	w.t.Helper()
	for range 30 {
		if w.tick() == 0 {
			return
		}
		w.deliver(len(w.events))
	}
	w.t.Fatalf("it does not come to rest")
}

func TestAReservationThatCannotBeTakenBackIsTakenBackLater(t *testing.T) {
	w := gangOfThree(t, 3)
	w.after = onlyServer("s1", func(*v1alpha1.Server) error { return errors.New("injected: lost") })
	_ = w.pass()
	w.after = nil
	w.end("db-2")
	w.restart()
	w.deliver(len(w.events))
	conflicts := 0
	w.before = onlyServer("s0", func(*v1alpha1.Server) error { // its lifecycle writes the status at the same time
		if conflicts++; conflicts > 2 {
			return nil
		}
		return apierrors.NewConflict(schema.GroupResource{}, "s0", errors.New("injected"))
	})
	w.rest()
	if got := w.onServers(); got != nil || conflicts != 3 {
		t.Errorf("%v stay written for a gang that is not whole; %d writes", got, conflicts)
	}
	if v, _ := w.s.Verdict("uid-db-0"); v.Message != `gang "db": 2 of its 3 members exist; none of them gets a server until all do` {
		t.Errorf("it is told %q", v.Message)
	}
}

// Somebody names another server on a member past admission, and nobody knows whether the server that was reserved for it was taken back.
func TestNoMemberNamesItsServerWhileAnotherOnesIsPerhapsTakenBack(t *testing.T) {
	w := gangOfThree(t, 4)
	lost := onlyServer("s2", func(*v1alpha1.Server) error { return errors.New("injected: lost") })
	w.after = lost
	_ = w.pass()
	for _, c := range w.claims() {
		if c.Name == "db-2" {
			naming("s3")(c)
			w.must(w.api.Update(context.Background(), c)) // which the watch has not shown yet
		}
	}
	w.after, w.before = nil, func(o client.Object) error {
		if _, isClaim := o.(*v1alpha1.ServerClaim); isClaim {
			return apierrors.NewConflict(schema.GroupResource{}, o.GetName(), errors.New("injected"))
		}
		return nil
	}
	_ = w.pass()
	w.after, w.before = lost, nil
	_ = w.pass()
	w.check()
	if got := w.boundClaims(); !slices.Equal(got, []string{"db-2"}) {
		t.Errorf("%v name a server, while db-2 does not have the one that it names", got)
	}
}

func TestFromTheFirstNamedServerOnEveryReservedMemberGetsItsOwn(t *testing.T) {
	another := func(w *world) { w.addClaim(aClaim("db-3", inGang(3))) }
	for _, tc := range []struct {
		name string
		then func(w *world)
		want []string
	}{
		{"nothing comes between", func(*world) {}, []string{"db-0", "db-1", "db-2"}},
		{"a member goes", func(w *world) { w.end("db-2") }, []string{"db-0", "db-1"}},
		{"one claim too many says that it is a member", another, []string{"db-0", "db-1", "db-2"}},
		{"a member says another size", func(w *world) {
			c := w.claims()[2]
			inGang(4)(c)
			w.must(w.api.Update(context.Background(), c))
			w.shown(c)
		}, []string{"db-0", "db-1", "db-2"}},
		{"and the manager is another", func(w *world) {
			another(w)
			w.restart()
		}, []string{"db-0", "db-1", "db-2"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := gangOfThree(t, 3)
			w.before = func(o client.Object) error {
				if o.GetName() == "db-1" {
					return &url.Error{Op: "Patch", Err: errors.New("injected: no answer")}
				}
				return nil
			}
			_ = w.pass()
			if got := w.boundClaims(); len(got) != 1 {
				t.Fatalf("bound are %v", got)
			}
			w.before = nil
			tc.then(w)
			for range 5 {
				w.deliver(len(w.events))
				w.must(w.pass())
				w.check()
			}
			if diff := cmp.Diff(tc.want, w.boundClaims()); diff != "" {
				t.Errorf("bound: %s", diff)
			}
		})
	}
}

func TestAMemberThatCannotBeNamedDoesNotKeepTheOthersFromTheirServers(t *testing.T) {
	w := gangOfThree(t, 3)
	w.before = func(o client.Object) error {
		if o.GetName() == "db-1" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "serverclaims"}, "db-1", errors.New("no rule allows it"))
		}
		return nil
	}
	_ = w.pass()
	if diff := cmp.Diff([]string{"db-0", "db-2"}, w.boundClaims()); diff != "" {
		t.Error(diff)
	}
	if got := w.onServers(); len(got) != 3 {
		t.Errorf("%v are written", got)
	}
}

func TestAnAnswerThatGotLostIsLookedUpBeforeAnythingIsTakenBack(t *testing.T) {
	w := gangOfThree(t, 3)
	w.after = func(o client.Object) error {
		if o.GetName() == "db-0" {
			return errors.New("injected: lost")
		}
		return nil
	}
	_ = w.pass()
	w.after, w.events = nil, nil // the watch lags
	w.end("db-2")
	w.deliver(1)
	for range 3 {
		_ = w.pass()
		w.check()
	}
	if diff := cmp.Diff([]string{"db-0", "db-1"}, w.boundClaims()); diff != "" {
		t.Error(diff)
	}
}

// gangWithAWriteUnderWay has servers kept for three members, of which one has ended since; nobody knows whether the write that
// names the server of another one arrives.
func gangWithAWriteUnderWay(t *testing.T) *world {
	t.Helper()
	w := gangOfThree(t, 3)
	w.before = func(o client.Object) error {
		if o.GetName() == "db-0" {
			return &url.Error{Op: "Patch", Err: errors.New("injected: timeout")}
		}
		return nil
	}
	_ = w.pass()
	w.before = nil
	w.end("db-2")
	return w
}

func TestNothingIsTakenBackWhileAWriteThatNamesItMayStillArrive(t *testing.T) {
	w := gangWithAWriteUnderWay(t)
	for range 3 {
		w.deliver(len(w.events))
		w.tick()
	}
	if s := w.holding(w.claims()[0]); s == nil || s.Name != "s0" {
		t.Fatalf("written are %v", w.onServers())
	}
	c := w.claims()[0]
	naming("s0")(c) // it arrives
	w.must(w.api.Update(context.Background(), c))
	w.shown(c)
	w.rest()
	w.check()
	if diff := cmp.Diff([]string{"db-0", "db-1"}, w.boundClaims()); diff != "" {
		t.Error(diff)
	}
	if s := w.holding(c); s == nil || s.Name != "s0" {
		t.Errorf("it names s0, and written are %v", w.onServers())
	}
}

func TestWhatCanArriveNoMoreIsTakenBack(t *testing.T) {
	w := gangWithAWriteUnderWay(t)
	w.deliver(len(w.events))
	began := w.now
	w.rest()
	if got := w.onServers(); got != nil || w.now.Sub(began) < longestWrite {
		t.Errorf("after %s %v are written", w.now.Sub(began), got)
	}
}

// committed says that some member of a gang has its server. One that was changed while the pass was under way counts by what it said
// before.
func (w *world) committed(name string) bool {
	for _, c := range w.claims() {
		isOf := func(gang *placement.Gang) bool { return gang != nil && gang.Name == name }
		if c.Spec.ServerRef == nil || !isOf(policies.GangOf(c)) && !slices.ContainsFunc(w.gangs[c.UID], isOf) {
			continue
		}
		if s := w.holding(c); s != nil && s.Name == c.Spec.ServerRef.Name {
			return true
		}
	}
	return false
}

// checkCommit tells if a server is taken from a member of a gang of which another one has its server.
func (w *world) checkCommit(before *v1alpha1.Server) {
	for _, c := range w.claims() {
		gang := policies.GangOf(c)
		if gang == nil || slices.ContainsFunc(w.gangs[c.UID], func(known *placement.Gang) bool { return known == nil || known.Name != gang.Name }) {
			continue // the scheduler does not know yet that it is of this gang
		}
		if policies.RelationOf(before, c) == policies.Holds && c.Spec.ServerRef == nil && w.committed(gang.Name) {
			w.mistake("server %s was taken from claim %s, though another of gang %s has its own", before.Name, c.Name, gang.Name)
		}
	}
}
