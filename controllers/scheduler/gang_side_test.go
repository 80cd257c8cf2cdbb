// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// gangAtGate has a gang of so many members, and servers s00, s01 and so on, behind a gate.
func gangAtGate(t *testing.T, members, servers int) *world {
	w := newWorld(t)
	w.gate = newGate()
	w.restart()
	for i := range servers {
		w.addServer(aServer(fmt.Sprintf("s%02d", i)))
	}
	for i := range members {
		w.addClaim(aClaim(fmt.Sprintf("db-%02d", i), placed(fmt.Sprintf("gang: {name: db, size: %d}", members))))
	}
	w.deliver(members + servers)
	return w
}

func TestTheWritesOfAGangAreMadeSideBySide(t *testing.T) {
	w := gangAtGate(t, 40, 40)
	w.must(w.pass())
	w.check()
	if got := len(w.boundClaims()); got != 40 || w.writes != 80 || w.gate.most != maxWriters {
		t.Errorf("%d claims are bound in %d writes, of which at most %d were under way at once", got, w.writes, w.gate.most)
	}
}

// TestASingleClaimIsBoundBesideAGang has more workers at the gate than may write at once: a gang's members count as one attempt.
func TestASingleClaimIsBoundBesideAGang(t *testing.T) {
	w := newWorld(t)
	w.gate = newGate()
	w.restart()
	for i := range 24 {
		w.addServer(aServer(fmt.Sprintf("s%02d", i)))
	}
	for i := range 4 {
		w.addClaim(aClaim(fmt.Sprintf("db-%02d", i), placed("gang: {name: db, size: 4}")))
	}
	for i := range 20 {
		w.addClaim(aClaim(fmt.Sprintf("single-%02d", i)))
	}
	w.deliver(99)
	w.must(w.pass())
	w.check()
	if got := len(w.boundClaims()); got != 24 {
		t.Errorf("%d claims are bound; want 24", got)
	}
}

func TestNoMoreWritesAreUnderWayThanMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		var underWay, made atomic.Int64
		slow := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				underWay.Add(1)
				<-answer
				made.Add(1)
				return nil
			},
		})
		b := New(slow, slow, Options{}).binder
		for range 20 {
			go func() { _ = b.patch(t.Context(), &v1alpha1.Server{}, nil) }()
		}
		synctest.Wait()
		if got := underWay.Load(); got != 16 {
			t.Errorf("%d writes are under way; want 16", got)
		}
		close(answer)
		synctest.Wait()
		if got := made.Load(); got != 20 {
			t.Errorf("%d writes were made; want 20", got)
		}
	})
}

func TestNoMemberIsNamedBeforeTheLastReservationIsWritten(t *testing.T) {
	w := gangAtGate(t, 5, 5)
	var order []string
	w.gate.fault = func(o client.Object) fault {
		order = append(order, o.GetName())
		return fault{}
	}
	w.gate.choose = func(n int) int { return n - 1 } // whichever waits, a claim's name comes before a server's
	w.must(w.pass())
	if diff := cmp.Diff([]string{"s04", "s03", "s02", "s01", "s00", "db-00", "db-04", "db-03", "db-02", "db-01"}, order); diff != "" {
		t.Error(diff)
	}
}

func TestOneReservationFailsWhileOthersAreUnderWay(t *testing.T) {
	conflict := fault{before: apierrors.NewConflict(schema.GroupResource{}, "s01", errors.New("injected"))}
	refusal := fault{before: apierrors.NewForbidden(schema.GroupResource{}, "s01", errors.New("injected"))}
	lost := fault{after: errors.New("injected: the answer got lost")}
	unsent := fault{before: errors.New("injected: no connection")}
	all := []string{"db-00", "db-01", "db-02", "db-03"}
	for _, tc := range []struct {
		name    string
		servers int
		// fault is what becomes of the writes of s01: of all, or with once of the first alone.
		fault fault
		once  bool
		// side is how many writes are under way at once. With crash, the manager dies once they are made.
		side  int
		crash bool
		// first is what is written once they are made; bound and written are what there is in the end.
		first, bound, written []string
	}{
		{"a conflict takes another server, and what is written stays", 5, conflict, false, 4, false,
			[]string{"s00", "s02", "s03"}, all, []string{"s00", "s02", "s03", "s04"}},
		{"also by the next manager", 5, conflict, false, 4, true,
			[]string{"s00", "s02", "s03"}, all, []string{"s00", "s02", "s03", "s04"}},
		{"a refusal takes another server", 5, refusal, false, 4, false,
			[]string{"s00", "s02", "s03"}, all, []string{"s00", "s02", "s03", "s04"}},
		{"a refusal without another server has all taken back", 4, refusal, false, 4, false,
			[]string{"s00", "s02", "s03"}, nil, nil},
		{"also by the next manager, without another", 4, refusal, false, 4, true,
			[]string{"s00", "s02", "s03"}, nil, nil},
		{"what was not begun is not begun any more", 4, refusal, false, 2, false,
			[]string{"s00"}, nil, nil},
		{"an answer that got lost is looked up, and the gang completed", 4, lost, true, 4, false,
			[]string{"s00", "s01", "s02", "s03"}, all, []string{"s00", "s01", "s02", "s03"}},
		{"also by the next manager, of an answer", 4, lost, true, 4, true,
			[]string{"s00", "s01", "s02", "s03"}, all, []string{"s00", "s01", "s02", "s03"}},
		{"a write that was not sent is made anew", 4, unsent, true, 3, false,
			[]string{"s00", "s02"}, all, []string{"s00", "s01", "s02", "s03"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := gangAtGate(t, 4, tc.servers)
			writes, crashes, crashed := 0, tc.crash, false
			var first []string
			w.gate.side = tc.side
			w.gate.choose = func(int) int { // the one that fails goes first, and all others are under way then
				return max(0, slices.IndexFunc(w.gate.waiting, func(a *ask) bool { return a.object.GetName() == "s01" }))
			}
			w.gate.fault = func(o client.Object) fault {
				if writes++; writes == tc.side+1 {
					first, crashed = w.onServers(), crashes
				}
				switch {
				case crashed:
					return fault{before: errors.New("injected: this manager is gone")}
				case o.GetName() == "s01" && (!tc.once || writes == 1):
					return tc.fault
				}
				return fault{}
			}
			_ = w.pass()
			if writes <= tc.side {
				first = w.onServers()
			}
			w.check()
			if tc.crash {
				w.restart()
			}
			crashes, crashed = false, false
			for range 6 {
				w.deliver(len(w.events))
				_ = w.pass()
				w.check()
			}
			for _, c := range []struct{ want, got []string }{{tc.first, first}, {tc.bound, w.boundClaims()}, {tc.written, w.onServers()}} {
				if diff := cmp.Diff(c.want, c.got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}
