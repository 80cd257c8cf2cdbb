// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

func TestNoNamespaceIsBoundBeyondItsQuota(t *testing.T) {
	for _, isConcurrent := range []bool{false, true} {
		w := newWorld(t)
		if isConcurrent {
			w.s.binder.launch = func(work func()) { go work() }
		}
		w.quota = bundle.Quota{Namespaces: map[string]int{"ns": 2}}
		for _, name := range []string{"a", "b", "c", "d"} {
			w.addServer(aServer(name))
		}
		for _, name := range []string{"first", "second", "third"} {
			w.addClaim(aClaim(name))
		}
		w.deliver(9)
		w.must(w.pass())
		var waiting []string
		for _, c := range w.claims() {
			if c.Spec.ServerRef == nil {
				verdict, _ := w.s.Verdict(c.UID)
				waiting = append(waiting, c.Name, verdict.Reason, verdict.Message)
			}
		}
		want := []string{"third", v1alpha1.ReasonQuotaExceeded, "the claims of the namespace have 2 of the 2 servers that its quota allows; " +
			"this one gets a server once another has ended, or the quota is raised"}
		if diff := cmp.Diff(want, waiting); diff != "" {
			t.Error(diff)
		}
		w.quota.Namespaces["ns"] = 3
		w.s.Wake()
		w.must(w.pass())
		for _, c := range w.claims() {
			if c.Spec.ServerRef == nil {
				t.Errorf("claim %s waits though the quota was raised", c.Name)
			}
		}
		w.check()
	}
}

func TestAQuotaThatIsFullOfServersWhoseClaimsAreGoneSaysSo(t *testing.T) {
	const full = "the claims of the namespace have 2 of the 2 servers that its quota allows; " +
		"this one gets a server once another has ended, or the quota is raised"
	w := newWorld(t)
	w.quota = bundle.Quota{Namespaces: map[string]int{"ns": 2}}
	for _, name := range []string{"a", "b"} {
		w.addServer(aServer(name, writtenFor("gone-"+name, "uid-gone-"+name), inState("Reserved"), dirty))
	}
	w.addServer(aServer("c"))
	w.addClaim(aClaim("waits"))
	w.deliver(9)
	w.must(w.pass())
	said := func() string {
		verdict, _ := w.s.Verdict("uid-waits")
		return verdict.Message
	}
	if diff := cmp.Diff(full, said()); diff != "" {
		t.Error("before it is known: ", diff)
	}
	w.changeServer(w.server("a"), func(s *v1alpha1.Server) {
		s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionClaimMissing, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonClaimNotFound}}
	})
	w.deliver(9)
	w.now = w.now.Add(worthRewriting)
	w.s.messages.restate() // which finds that it is to be asked again
	w.must(w.pass())
	const gone = "; counted are servers held for claims that are gone (1): ask whoever runs the fleet to release them, " +
		"or create such a claim again under its name, with the spec.serverRef that it had"
	if diff := cmp.Diff(full+gone, said()); diff != "" {
		t.Error("once it is known: ", diff)
	}
}

// Admission lets in no more members than the quota allows, so that the gang is never whole.
func TestAGangThatItsQuotaNeverHasRoomForIsToldSo(t *testing.T) {
	const tooSmall = `QuotaExceeded gang "db": it takes 3 servers, and the quota of the namespace allows its claims 2. ` +
		"None of its members gets one until the quota is raised or the gang is smaller"
	for name, c := range map[string]struct {
		members, quota int
		want           string
	}{
		"while members are missing":    {2, 2, tooSmall},
		"once it is whole":             {3, 2, tooSmall},
		"not where the quota has room": {2, 3, `GangWaiting gang "db": 2 of its 3 members exist; none of them gets a server until all do`},
		"nor where its members contradict it": {4, 2, `InvalidPlacement gang "db": 4 claims say that they are members, and its size is 3; ` +
			"none of them gets a server until they agree"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.quota = bundle.Quota{Namespaces: map[string]int{"ns": c.quota}}
			for i := range 4 {
				w.addServer(aServer(fmt.Sprintf("s%d", i)))
			}
			for i := range c.members {
				w.addClaim(aClaim(fmt.Sprintf("db-%d", i), inGang(3)))
			}
			w.deliver(9)
			w.must(w.pass())
			for _, one := range w.claims() {
				if v, _ := w.s.Verdict(one.UID); v.Reason+" "+v.Message != c.want {
					t.Errorf("%s is told %s %q", one.Name, v.Reason, v.Message)
				}
			}
			w.quota = bundle.Quota{}
			for i := c.members; i < 3; i++ {
				w.addClaim(aClaim(fmt.Sprintf("db-%d", i), inGang(3)))
			}
			w.deliver(9)
			w.s.Wake()
			w.must(w.pass())
			if got := len(w.boundClaims()); c.members <= 3 && got != 3 {
				t.Errorf("%d are bound once there is no quota", got)
			}
		})
	}
}

func TestALoweredQuotaTakesNothingAway(t *testing.T) {
	w := newWorld(t)
	w.addServer(aServer("a"))
	w.addClaim(aClaim("claim"))
	w.deliver(9)
	w.must(w.pass())
	none := 0
	w.quota = bundle.Quota{Default: &none}
	w.s.Wake()
	w.deliver(9)
	w.must(w.pass())
	if ref := w.claims()[0].Spec.ServerRef; ref == nil || ref.Name != "a" {
		t.Errorf("the claim names %v", ref)
	}
}

func TestRoomInAQuotaGoesToTheClaimThatIsServedFirst(t *testing.T) {
	w := newWorld(t)
	w.quota = bundle.Quota{Namespaces: map[string]int{"ns": 1}}
	w.addServer(aServer("a", labelled("size", "small")))
	w.addServer(aServer("b", labelled("size", "large")))
	w.addClaim(aClaim("has", made(0), selecting("size", "small")))
	w.addClaim(aClaim("older", made(1), selecting("size", "large")))
	w.deliver(9)
	w.must(w.pass())
	w.deliver(9)
	w.changeServer(w.server("a"), ForgetBinding)
	w.endClaim(w.claims()[0])
	w.addClaim(aClaim("younger", made(2), selecting("size", "large"), func(c *v1alpha1.ServerClaim) {
		c.Spec.Tolerations = []v1alpha1.Toleration{{Key: "k", Operator: "Exists"}} // so that it is of a class of its own
	}))
	w.deliver(9)
	w.must(w.pass())
	if diff := cmp.Diff([]string{"older"}, w.boundClaims()); diff != "" {
		t.Error(diff)
	}
}
