// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/selection"
)

// asked is byName with a count of the evaluations. It tells claims apart by their image.
type asked struct {
	times   *int
	follows bool
	rejects byName
}

func (p asked) Select(ctx context.Context, claim selection.Claim, all []*selection.PreparedCandidate, f selection.Fleet) (selection.Result, error) {
	*p.times++
	return p.rejects.Select(ctx, claim, all, f)
}

func (p asked) Asks(claim selection.Claim) string { return claim.Image }

func (p asked) FollowsFleet() bool { return p.follows }

// under puts a policy in force.
func (w *world) under(p solve.Policy) {
	w.s.policy = func() (solve.Policy, engine.Revision) { return p, engine.Revision{Name: "test"} }
}

func TestHowOftenThePolicyIsAsked(t *testing.T) {
	image := func(name string) func(*v1alpha1.ServerClaim) {
		return func(c *v1alpha1.ServerClaim) { c.Spec.Image = name }
	}
	for _, tc := range []struct {
		name            string
		servers, claims int
		follows         bool
		change          func(i int) func(*v1alpha1.ServerClaim)
		evaluations     int
		bound           int
	}{
		{"claims that ask for the same share one evaluation", 20, 20, false, func(int) func(*v1alpha1.ServerClaim) { return image("os:1") }, 1, 20},
		{"and so do those that are left without a server", 3, 20, false, func(int) func(*v1alpha1.ServerClaim) { return image("os:1") }, 1, 3},
		{"claims that the policy tells apart do not", 20, 20, false,
			func(i int) func(*v1alpha1.ServerClaim) { return image(fmt.Sprintf("os:%d", i%4)) }, 4, 20},
		{"nor do claims that differ in what they select", 20, 20, false,
			func(i int) func(*v1alpha1.ServerClaim) { return selecting("rack", fmt.Sprint(i%2)) }, 2, 20},
		{"where counts matter, each binding asks anew", 20, 20, true, func(int) func(*v1alpha1.ServerClaim) { return image("os:1") }, 20, 20},
		{"and claims that are left without a server ask once", 3, 20, true, func(int) func(*v1alpha1.ServerClaim) { return image("os:1") }, 3, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			for i := range tc.servers {
				w.addServer(aServer(fmt.Sprintf("s%02d", i), labelled("rack", fmt.Sprint(i%2))))
			}
			for i := range tc.claims {
				w.addClaim(aClaim(fmt.Sprintf("c%02d", i), tc.change(i)))
			}
			w.deliver(99)
			times := 0
			w.under(asked{times: &times, follows: tc.follows})
			w.must(w.pass())
			if bound := len(w.boundClaims()); times != tc.evaluations || bound != tc.bound {
				t.Errorf("%d evaluations for %d bindings, want %d for %d", times, bound, tc.evaluations, tc.bound)
			}
		})
	}
}

func TestAPolicyThatFailsIsAskedOnceForAllThatAskTheSame(t *testing.T) {
	w := newWorld(t)
	times := 0
	w.under(broken{asked{times: &times}})
	w.addServer(aServer("a"))
	for i := range 20 {
		w.addClaim(aClaim(fmt.Sprintf("c%02d", i)))
	}
	w.deliver(99)
	w.must(w.pass())
	if v, _ := w.s.Verdict("uid-c19"); times != 1 || v.Reason != v1alpha1.ReasonGuardError {
		t.Errorf("%d evaluations; the last claim is told %s", times, v.Reason)
	}
}

// broken is a policy that fails.
type broken struct{ asked }

func (b broken) Select(context.Context, selection.Claim, []*selection.PreparedCandidate, selection.Fleet) (selection.Result, error) {
	*b.times++
	return selection.Result{}, errors.New("selection: server a: boom")
}

// boundClaims are the claims that name a server.
func (w *world) boundClaims() (names []string) {
	for _, c := range w.claims() {
		if c.Spec.ServerRef != nil {
			names = append(names, c.Name)
		}
	}
	return names
}

func TestAServerEventWakesOnlyTheClaimsThatItCouldSatisfy(t *testing.T) {
	rack := func(n string) func(*v1alpha1.Server) { return labelled("rack", n) }
	tainted := func(s *v1alpha1.Server) { s.Spec.Taints = []v1alpha1.Taint{{Key: "bad"}} }
	for _, tc := range []struct {
		name          string
		before, after *v1alpha1.Server
		want          []string
	}{
		{"a server that none asks for", nil, aServer("s", rack("9")), nil},
		{"one that two ask for", nil, aServer("s", rack("1")), []string{"one", "one-more"}},
		{"one that is named", nil, aServer("named"), []string{"by-name"}},
		{"one that is not free", nil, aServer("s", rack("1"), inState("Cleanup")), nil},
		{"one that is held", nil, aServer("s", rack("1"), inState("Reserved"), dirty, writtenFor("other", "uid-other")), nil},
		{"one that becomes free", aServer("s", rack("1"), inState("Cleanup")), aServer("s", rack("1"), at("2")), []string{"one", "one-more"}},
		{"one that leaves", aServer("s", rack("1")), aServer("s", rack("1"), inState("Reserved"), at("2")), nil},
		{"one whose taint only one tolerates", nil, aServer("s", rack("2"), tainted), []string{"tolerant"}},
		{"nothing that matters", aServer("s", rack("1")), aServer("s", rack("1"), at("2")), nil},
		{"one that gets the label", aServer("s", rack("9")), aServer("s", rack("1"), at("2")), []string{"one", "one-more"}},
		{"one that somebody wrote for a claim", nil, aServer("s", writtenFor("two", "uid-two")), []string{"two"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			if tc.before != nil {
				w.s.fleet.Saw(tc.before)
			}
			for _, c := range []*v1alpha1.ServerClaim{aClaim("one", selecting("rack", "1")), aClaim("one-more", selecting("rack", "1")),
				aClaim("two", selecting("rack", "2")), aClaim("by-name", naming("named")),
				aClaim("tolerant", selecting("rack", "2"), func(c *v1alpha1.ServerClaim) { c.Spec.Tolerations = []v1alpha1.Toleration{{Operator: "Exists"}} })} {
				w.s.claimChanged(c)
			}
			w.s.pending.take(bundle.Priority{}, epoch)
			due := w.s.serverChanged(w.s.fleet.Saw(tc.after))
			var got []string
			for _, a := range w.s.pending.take(bundle.Priority{}, epoch) {
				got = append(got, a.claim.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || due != (len(tc.want) > 0) {
				t.Errorf("a pass is due: %t, %s", due, diff)
			}
		})
	}
}

func TestAnEventThatHelpsNobodyCostsNoEvaluation(t *testing.T) {
	w := newWorld(t)
	times := 0
	w.under(asked{times: &times, rejects: byName{"s1": "memory"}})
	w.addServer(aServer("s1", labelled("rack", "1")))
	w.addClaim(aClaim("one", selecting("rack", "1")))
	w.deliver(9)
	w.must(w.pass())
	times = 0
	for i := range 50 {
		w.addServer(aServer(fmt.Sprintf("other%d", i), labelled("rack", "2")))
	}
	w.deliver(99)
	w.must(w.pass())
	w.s.messages.restate()
	if times != 0 {
		t.Errorf("%d evaluations for events that concern no claim", times)
	}
	w.now = w.now.Add(time.Minute)
	w.s.messages.restate()
	if v, _ := w.s.Verdict("uid-one"); times != 0 || v.Message != "1 of 1 servers match: memory 1" {
		t.Errorf("%d evaluations; the claim is told %q", times, v.Message)
	}
	w.must(w.pass()) // the policy's word is a minute old
	if v, _ := w.s.Verdict("uid-one"); times != 1 || v.Message != "1 of 51 servers match: memory 1" {
		t.Errorf("%d evaluations; the claim is told %q", times, v.Message)
	}
}

func TestTheWordsOfAClaimThatWaitsFollowTheFleet(t *testing.T) {
	w := newWorld(t)
	w.addServer(aServer("a", inState("Cleanup")))
	w.addClaim(aClaim("claim"))
	w.deliver(9)
	w.must(w.pass())
	w.addServer(aServer("b", inState("Cleanup")))
	w.deliver(9)
	if again := w.s.messages.restate(); again != worthRewriting {
		t.Errorf("other counts are told after %s", again)
	}
	w.now = w.now.Add(worthRewriting)
	w.s.messages.restate()
	if v, _ := w.s.Verdict("uid-claim"); v.Message != "2 of 2 servers match: not-available 2" {
		t.Errorf("the claim is told %q", v.Message)
	}
}

func TestAFirstRejectionIsToldInOneEvent(t *testing.T) {
	w := newWorld(t)
	w.addServer(aServer("a", inState("Cleanup")))
	w.addClaim(aClaim("new"))
	told := aClaim("told", func(c *v1alpha1.ServerClaim) {
		c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionBound, Status: metav1.ConditionFalse, Reason: "NoServers"}}
	})
	w.addClaim(told)
	w.deliver(9)
	recorder := events.NewFakeRecorder(9)
	w.s.messages.recorder = recorder
	w.must(w.pass())
	w.addServer(aServer("b", inState("Cleanup")))
	w.deliver(9)
	w.now = w.now.Add(time.Hour)
	w.s.messages.restate()
	close(recorder.Events)
	var got []string
	for event := range recorder.Events {
		got = append(got, event)
	}
	if diff := cmp.Diff([]string{"Normal NoneClaimable 1 of 1 servers match: not-available 1"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestBindingsAreWrittenSideBySide(t *testing.T) {
	w := newWorld(t)
	w.gate = newGate()
	w.restart()
	for i := range 40 {
		w.addServer(aServer(fmt.Sprintf("s%02d", i)))
		w.addClaim(aClaim(fmt.Sprintf("c%02d", i)))
	}
	w.deliver(99)
	w.must(w.pass())
	w.check()
	if bound := len(w.boundClaims()); bound != 40 || w.gate.most != maxWriters {
		t.Errorf("%d claims are bound, by %d at once; want 40 by %d", bound, w.gate.most, maxWriters)
	}
}

func TestWhoIsServedFirst(t *testing.T) {
	prior := func(n string) func(*v1alpha1.ServerClaim) {
		return func(c *v1alpha1.ServerClaim) { c.Annotations = map[string]string{v1alpha1.PriorityAnnotation: n} }
	}
	made := func(before time.Duration) func(*v1alpha1.ServerClaim) {
		return func(c *v1alpha1.ServerClaim) { c.CreationTimestamp = metav1.NewTime(epoch.Add(-before)) }
	}
	in := func(ns string) func(*v1alpha1.ServerClaim) { return func(c *v1alpha1.ServerClaim) { c.Namespace = ns } }
	granted := bundle.Priority{Max: 100, Namespaces: map[string]int64{"batch": 0, "core": 1000}, Ageing: 10 * time.Minute}
	for _, tc := range []struct {
		name   string
		claims []*v1alpha1.ServerClaim
		want   string
	}{
		{"the higher priority", []*v1alpha1.ServerClaim{aClaim("low"), aClaim("high", prior("5"))}, "high low"},
		{"of two that ask for more than they are granted the older", []*v1alpha1.ServerClaim{aClaim("more", prior("900")), aClaim("old", prior("100"), made(time.Minute))}, "old more"},
		{"the namespace that is granted more", []*v1alpha1.ServerClaim{aClaim("team", prior("900")), aClaim("core", in("core"), prior("900"))}, "core team"},
		{"not the namespace that is granted nothing", []*v1alpha1.ServerClaim{aClaim("batch", in("batch"), prior("900")), aClaim("team", prior("1"))}, "team batch"},
		{"one that has waited for long", []*v1alpha1.ServerClaim{aClaim("high", prior("5")), aClaim("old", made(time.Hour))}, "old high"},
		{"not one that has waited for too short", []*v1alpha1.ServerClaim{aClaim("high", prior("5")), aClaim("old", made(40*time.Minute))}, "high old"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPending()
			for _, c := range tc.claims {
				p.saw(c, epoch)
			}
			var got []string
			for _, a := range p.take(granted, epoch) {
				got = append(got, a.claim.Name)
			}
			if order := strings.Join(got, " "); order != tc.want {
				t.Errorf("got %s, want %s", order, tc.want)
			}
		})
	}
}

func TestAnOldClaimOfLowPriorityIsNotStarved(t *testing.T) {
	urgent := func(c *v1alpha1.ServerClaim) { c.Annotations = map[string]string{v1alpha1.PriorityAnnotation: "20"} }
	made := func(at time.Time) func(*v1alpha1.ServerClaim) {
		return func(c *v1alpha1.ServerClaim) { c.CreationTimestamp = metav1.NewTime(at) }
	}
	w := newWorld(t)
	w.s.claims = func() bundle.Claims {
		return bundle.Claims{Priority: bundle.Priority{Max: 1000, Ageing: 10 * time.Minute}}
	}
	w.addClaim(aClaim("patient", made(w.now)))
	w.addClaim(aClaim("alone", made(w.now), selecting("gpu", "yes")))
	w.addServer(aServer("gpu", labelled("gpu", "yes")))
	w.addClaim(aClaim("picky", made(w.now), urgent, selecting("gpu", "no")))
	w.deliver(9)
	for round := range 30 { // one server comes up every ten minutes, and one more urgent claim with it
		w.addServer(aServer(fmt.Sprintf("s%d", round)))
		w.addClaim(aClaim(fmt.Sprintf("urgent%d", round), urgent, made(w.now)))
		w.deliver(9)
		w.must(w.pass())
		w.now = w.now.Add(10 * time.Minute)
		if strings.Contains(strings.Join(w.boundClaims(), " "), "patient") {
			t.Logf("served in round %d", round)
			return
		}
	}
	t.Error("the claim that has waited for the longest is never served")
}
