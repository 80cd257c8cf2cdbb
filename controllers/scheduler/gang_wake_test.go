// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// confirmedClaim says of itself that it is Bound.
func confirmedClaim(c *v1alpha1.ServerClaim) {
	c.Status.Phase = v1alpha1.PhaseBound
	c.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionBound, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonBound},
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Booted"},
	}
}

// asked delivers what the watch has, and says whether any of it asks for a pass.
func (w *world) asked() bool {
	asked := false
	for _, o := range w.events {
		switch o := o.(type) {
		case *v1alpha1.Server:
			asked = w.s.serverChanged(w.s.fleet.Saw(o)) || asked
		case *v1alpha1.ServerClaim:
			asked = w.s.claimChanged(o) || asked
		}
	}
	w.events = nil
	return asked
}

// lostMember is a gang of three of which db-1 has its server, db-0 names one that does not know of it, and db-2 waits.
func lostMember(t *testing.T) *world {
	w := newWorld(t)
	w.addServer(aServer("s0"))
	w.addServer(aServer("s1", writtenFor("db-1", "uid-db-1"), inState("Reserved")))
	w.addServer(aServer("s2"))
	for _, c := range []*v1alpha1.ServerClaim{aClaim("db-0", inGang(3), naming("s0"), confirmedClaim),
		aClaim("db-1", inGang(3), naming("s1"), confirmedClaim), aClaim("db-2", inGang(3))} {
		w.addClaim(c)
	}
	w.asked()
	w.must(w.pass())
	const waits = `gang "db": 1 of its 3 members name a server that is not theirs; none of the others gets a server until that is mended`
	if v, _ := w.s.Verdict("uid-db-2"); v.Message != waits {
		t.Fatalf("it is told %q", v.Message)
	}
	return w
}

func TestAGangGoesOnOnceALostMemberHasItsServerAgain(t *testing.T) {
	for name, mend := range map[string]func(w *world){
		"an operator writes the claim on the server": func(w *world) {
			w.changeServer(w.server("s0"), writtenFor("db-0", "uid-db-0"), inState("Reserved"))
		},
		"the server is made anew with its claim": func(w *world) {
			w.s.serverChanged(w.s.fleet.Gone("s0"))
			w.must(w.api.Delete(context.Background(), w.server("s0")))
			w.addServer(aServer("s0", writtenFor("db-0", "uid-db-0"), inState("Reserved")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := lostMember(t)
			mend(w)
			for range 5 {
				if w.asked() || w.s.pending.anyDue() {
					w.must(w.pass())
				}
			}
			if diff := cmp.Diff([]string{"db-0", "db-1", "db-2"}, w.boundClaims()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAGangGoesOnOnceALostMemberWasAdopted(t *testing.T) {
	w := lostMember(t)
	c := w.claims()[0]
	c.Status = v1alpha1.ServerClaimStatus{}
	w.must(w.api.Status().Update(context.Background(), c))
	w.shown(c)
	w.changeServer(w.server("s0"), writtenFor("db-0", ""), inState("Reserved"))
	if !w.asked() {
		t.Fatal("no pass is asked for")
	}
	for range 5 {
		after := w.tick()
		w.events = nil // the watch lags
		if after == 0 {
			break
		}
	}
	if diff := cmp.Diff([]string{"db-0", "db-1", "db-2"}, w.boundClaims()); diff != "" {
		t.Error(diff)
	}
}
