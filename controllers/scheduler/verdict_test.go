// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestVerdictsAreRewrittenSparingly(t *testing.T) {
	v := newVerdicts()
	verdict := func(reason string, counts map[string]int) Verdict {
		return Verdict{Reason: reason, Message: fmt.Sprint(counts), counts: counts}
	}
	for _, step := range []struct {
		name    string
		verdict Verdict
		at      time.Duration
		changed bool
		again   time.Duration
	}{
		{"the first word", verdict("NoneClaimable", map[string]int{"claimed": 12}), 0, true, 0},
		{"the same once more", verdict("NoneClaimable", map[string]int{"claimed": 12}), time.Second, false, 0},
		{"other counts, too early", verdict("NoneClaimable", map[string]int{"claimed": 11}), 10 * time.Second, false, 20 * time.Second},
		{"another code", verdict("NoneClaimable", map[string]int{"claimed": 11, "taint": 1}), 11 * time.Second, true, 0},
		{"another reason", verdict("PolicyRejected", map[string]int{"claimed": 11, "taint": 1}), 12 * time.Second, true, 0},
		{"other counts, late enough", verdict("PolicyRejected", map[string]int{"claimed": 10, "taint": 2}), 42 * time.Second, true, 0},
	} {
		changed, again := v.give("uid", step.verdict, epoch.Add(step.at), func() bool { return true })
		if changed != step.changed || again != step.again {
			t.Errorf("%s: changed %t again %s, want %t %s", step.name, changed, again, step.changed, step.again)
		}
	}
	if got, ok := v.get("uid"); !ok || got.Message != "map[claimed:10 taint:2]" {
		t.Errorf("verdict is %+v", got)
	}
}

func TestAClaimThatEndsWaitsForItsBindingAndIsNeverBoundAgain(t *testing.T) {
	g := newGuard()
	const uid = types.UID("u")
	binding, proceed, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var order []string
	go func() {
		defer close(ended)
		<-binding
		go close(proceed)
		_ = g.end(uid, func() error { order = append(order, "ended"); return nil })
	}()
	g.bind([]types.UID{uid}, func() {
		close(binding)
		<-proceed
		order = append(order, "bound")
	})
	<-ended
	g.bind([]types.UID{uid}, func() { t.Error("bound after its end") })
	if len(order) != 2 || order[0] != "bound" {
		t.Errorf("order %v", order)
	}
	g.forget(uid)
	if len(g.claims) != 0 {
		t.Error("a claim that is gone is remembered")
	}
}

// eventsOfClaims takes down the type and the reason of each Event of a claim.
type eventsOfClaims struct{ all *[]string }

func (n eventsOfClaims) Eventf(about, _ runtime.Object, kind, reason, _, _ string, _ ...any) {
	if _, ok := about.(*v1alpha1.ServerClaim); ok {
		*n.all = append(*n.all, kind+" "+reason)
	}
}

func TestAnEventTellsOfTheFirstVerdictAndOfEachThatSomebodyHasToActOn(t *testing.T) {
	w := newWorld(t)
	var told []string
	w.s.messages.recorder = eventsOfClaims{&told}
	w.addServer(aServer("a", inState("Cleanup")))
	w.addClaim(aClaim("c"))
	w.addClaim(aClaim("d", naming("nowhere")))
	pass := func() []string {
		told = nil
		w.deliver(len(w.events))
		w.now = w.now.Add(time.Hour)
		w.s.pending.wakeAll()
		w.must(w.pass())
		slices.Sort(told)
		return slices.Clone(told)
	}
	got := [][]string{pass(), pass()}
	w.changeServer(w.server("a"), func(s *v1alpha1.Server) { s.Status.State = v1alpha1.StateAvailable })
	w.under(failing{})
	got = append(got, pass(), pass())
	want := [][]string{{"Normal NoneClaimable", "Warning ServerNotFound"}, nil, {"Warning GuardError"}, nil}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAVerdictThatSomebodyHasToActOnIsToldAlsoWhereAManagerBeforeGaveAnother(t *testing.T) {
	for name, c := range map[string]struct {
		before string
		want   []string
	}{
		"another one":                {"NoneClaimable", []string{"Warning GuardError"}},
		"the same":                   {"GuardError", nil},
		"none, for it was not begun": {"", []string{"Warning GuardError"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var told []string
			w.s.messages.recorder = eventsOfClaims{&told}
			w.under(failing{})
			w.addServer(aServer("a"))
			w.addClaim(aClaim("c", func(claim *v1alpha1.ServerClaim) {
				if c.before != "" {
					claim.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionBound, Status: metav1.ConditionFalse, Reason: c.before}}
				}
			}))
			w.deliver(len(w.events))
			w.must(w.pass())
			if diff := cmp.Diff(c.want, told, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
