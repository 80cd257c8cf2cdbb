// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

func TestALostRaceTakesTheNextWithoutEvaluatingAgain(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.addServer(aServer(name))
	}
	w.addClaim(aClaim("claim"))
	w.deliver(9)
	asked := 0
	w.s.policy = func() (solve.Policy, engine.Revision) { return counting{&asked}, engine.Revision{} }
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

func TestAServerWrittenForAClaimThatNamesAnotherIsTakenBack(t *testing.T) {
	moved := func(s *v1alpha1.Server) {
		s.Status.State, s.Status.Lifecycle = v1alpha1.StateReserved, &v1alpha1.LifecycleStatus{}
	}
	for _, c := range []struct {
		name string
		// y is the server that is written for the claim, which names x or nothing.
		y     func(*v1alpha1.Server)
		claim []func(*v1alpha1.ServerClaim)
		back  bool
	}{
		{"while it is Available", inState(v1alpha1.StateAvailable), []func(*v1alpha1.ServerClaim){naming("x")}, true},
		{"after it moved to Reserved", moved, []func(*v1alpha1.ServerClaim){naming("x")}, true},
		{"not once it was booted", func(s *v1alpha1.Server) { moved(s); dirty(s) }, []func(*v1alpha1.ServerClaim){naming("x")}, false},
		{"not where its lifecycle was lost", inState(v1alpha1.StateReserved), []func(*v1alpha1.ServerClaim){naming("x")}, false},
		{"not where it is in maintenance", func(s *v1alpha1.Server) { moved(s); s.Status.State = v1alpha1.StateMaintenance }, []func(*v1alpha1.ServerClaim){naming("x")}, false},
		{"not where its release is recorded", func(s *v1alpha1.Server) { moved(s); annotated(v1alpha1.ReleasedClaimAnnotation, "uid-claim")(s) },
			[]func(*v1alpha1.ServerClaim){naming("x")}, false},
		{"not where it moved for an earlier claim of the name", func(s *v1alpha1.Server) { moved(s); annotated(v1alpha1.ClaimUIDAnnotation, "former")(s) },
			[]func(*v1alpha1.ServerClaim){naming("x")}, false},
		{"not where it moved and its claim is gone", moved, nil, false},
		{"not where the claim names it", moved, []func(*v1alpha1.ServerClaim){naming("y")}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.addServer(aServer("x"))
			w.addServer(aServer("y", writtenFor("claim", "uid-claim"), c.y))
			if c.claim != nil {
				w.addClaim(aClaim("claim", c.claim...))
			}
			w.deliver(9)
			w.settle()
			if got := w.server("y").Spec.ServerClaimRef == nil; got != c.back {
				t.Errorf("taken back: %t", got)
			}
		})
	}
}

func TestAUserWhoNamesAServerWhileAnotherIsReservedGetsTheOneNamed(t *testing.T) {
	w := newWorld(t)
	w.addServer(aServer("x"))
	w.addServer(aServer("a")) // the policy's choice
	w.addClaim(aClaim("claim"))
	w.deliver(9)
	w.after = func(o client.Object) error {
		w.after = nil
		if s, ok := o.(*v1alpha1.Server); ok && s.Name == "a" { // between the two writes of the binding
			c := w.claims()[0]
			naming("x")(c)
			w.must(w.api.Update(context.Background(), c))
			w.shown(c)
			w.changeServer(w.server("a"), func(s *v1alpha1.Server) {
				s.Status.State, s.Status.Lifecycle = v1alpha1.StateReserved, &v1alpha1.LifecycleStatus{}
			})
		}
		return nil
	}
	_ = w.pass() // the claim refuses the server
	w.settle()
	if got := w.server("a").Spec.ServerClaimRef; got != nil {
		t.Errorf("server a stays with %v", got)
	}
	if got := w.server("x").Spec.ServerClaimRef; got == nil || got.Name != "claim" {
		t.Errorf("server x has %v", got)
	}
}

// during is a policy under which something happens while it is asked.
type during struct{ happens func() }

func (d during) Select(ctx context.Context, claim selection.Claim, all []*selection.PreparedCandidate, f selection.Fleet) (selection.Result, error) {
	d.happens()
	return byName{"a": "full"}.Select(ctx, claim, all, f)
}

func TestAClaimThatIsDeletedDuringAPassLeavesNoVerdict(t *testing.T) {
	w := newWorld(t)
	w.addServer(aServer("a"))
	w.addClaim(aClaim("first"))
	w.addClaim(aClaim("second"))
	w.deliver(9)
	before := pendingFor(t, "PolicyRejected")
	asked := 0
	w.s.policy = func() (solve.Policy, engine.Revision) {
		return during{func() {
			if asked++; asked == 2 { // the watch shows that the first one went
				w.s.pending.gone("ns", "uid-first")
				w.s.messages.verdicts.drop("uid-first")
			}
		}}, engine.Revision{Name: "test"}
	}
	w.must(w.pass())
	if _, ok := w.s.Verdict("uid-first"); ok {
		t.Error("a verdict is left for a claim that is gone")
	}
	if _, ok := w.s.Verdict("uid-second"); !ok {
		t.Error("the claim that waits has no verdict")
	}
	if got := pendingFor(t, "PolicyRejected") - before; got != 1 {
		t.Errorf("the metric counts %v claims", got)
	}
	w.s.messages.verdicts.drop("uid-second")
}

// pendingFor reads the metric of claims that wait.
func pendingFor(t *testing.T, reason string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "metalaw_claims_pending" && m.GetLabel()[0].GetValue() == reason {
				return m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no metric for %s", reason)
	return 0
}

func TestADoubtEndsWithItsClaim(t *testing.T) {
	w := newWorld(t)
	w.addServer(aServer("a"))
	w.addClaim(aClaim("claim"))
	w.deliver(9)
	w.after = func(client.Object) error { return errors.New("injected: the answer got lost") }
	if w.pass() == nil {
		t.Fatal("the pass does not say that it failed")
	}
	w.after = nil
	w.endClaim(w.claims()[0])
	w.settle()
	if len(w.s.uncertain.reserved()) != 0 {
		t.Errorf("doubts are left: %v", w.s.uncertain.reserved())
	}
	if got := w.server("a").Spec.ServerClaimRef; got != nil {
		t.Errorf("server a stays with %v", got)
	}
}

// What a server of a write in doubt turned into is found by looking it up, before the watch tells of it.
func TestWhatALookUpFindsWakesTheClaimsThatItConcerns(t *testing.T) {
	w := newWorld(t)
	rack := func(rack string) func(*v1alpha1.Server) { return labelled(policies.RackMetadata, rack) }
	w.addServer(aServer("full", rack("r1"), writtenFor("web", "uid-web")))
	w.addServer(aServer("wanted", rack("r1")))
	w.addServer(aServer("doubted", rack("r2"), labelled("size", "large")))
	w.addClaim(aClaim("web", claimLabelled("app", "web"), naming("full"), confirmedClaim))
	w.addClaim(aClaim("a-first", selecting("size", "large")))
	w.addClaim(aClaim("b-waits", claimLabelled("app", "web"), placed("spread: {key: rack, claims: {matchLabels: {app: web}}}")))
	w.deliver(9)
	w.before = func(client.Object) error {
		w.before = nil
		w.changeServer(w.server("doubted"), func(s *v1alpha1.Server) {
			s.Spec.Taints = []v1alpha1.Taint{{Key: "dedicated", Effect: v1alpha1.TaintEffectNoBind}}
		})
		return errors.New("injected: nobody answers")
	}
	if w.pass() == nil {
		t.Fatal("the pass does not say that it failed")
	}
	if v, _ := w.s.Verdict("uid-b-waits"); v.Reason == "" {
		t.Fatal("the claim that keeps apart does not wait for the rack of the server in doubt")
	}
	if w.tick() == 0 {
		t.Error("no pass is asked for after the one that looked")
	}
	w.settle()
	if got := w.server("wanted").Spec.ServerClaimRef; got == nil || got.Name != "b-waits" {
		t.Errorf("server wanted has %v: nothing keeps the claim from the first rack any more", got)
	}
}

func TestAnAdoptionIsToldOnTheClaimAndTheServer(t *testing.T) {
	for name, c := range map[string]struct {
		former string
		want   []string
	}{
		"from a former claim of the name": {"uid-former", []string{
			"Warning ServerAdopted Took over server a with the data that a former claim of that name (uid-former) left there",
			"Warning ServerAdopted Taken over, by the claim that spec.serverClaimRef names, with the data that a former claim of that name (uid-former) left there"}},
		"from before any UID was recorded": {"", []string{
			"Normal ServerAdopted Took over server a with the data; nobody had recorded which claim of that name is meant",
			"Normal ServerAdopted Taken over, by the claim that spec.serverClaimRef names, with the data; nobody had recorded which claim of that name is meant"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.addServer(aServer("a", inState(v1alpha1.StateReserved), dirty, writtenFor("claim", c.former)))
			w.addClaim(aClaim("claim", naming("a")))
			w.deliver(9)
			recorder := events.NewFakeRecorder(9)
			w.s.messages.recorder = recorder
			w.must(w.pass())
			close(recorder.Events)
			var told []string
			for event := range recorder.Events {
				if strings.Contains(event, v1alpha1.ReasonServerAdopted) {
					told = append(told, event)
				}
			}
			if diff := cmp.Diff(c.want, told); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAClaimIsBindingUntilTheWatchShowsItsServer(t *testing.T) {
	w := newWorld(t)
	w.addServer(aServer("a"))
	w.addClaim(aClaim("c"))
	w.deliver(2)
	seen := w.claims()[0]
	var during bool
	w.before = func(client.Object) error {
		during = w.s.Binding(seen)
		return nil
	}
	before := w.s.Binding(seen)
	w.must(w.pass())
	if behind, shown := w.s.Binding(seen), w.s.Binding(w.claims()[0]); before || !during || !behind || shown {
		t.Errorf("before %t, during %t, while the cache is behind %t, after %t", before, during, behind, shown)
	}
}

// toldAbout takes down every Event, as about whom it is, whom it names besides, and its words.
type toldAbout struct{ all *[]string }

func (n toldAbout) Eventf(about, besides runtime.Object, _, reason, _, words string, args ...any) {
	other := "nobody"
	if besides != nil {
		other = fmt.Sprintf("%T", besides)
	}
	*n.all = append(*n.all, fmt.Sprintf("%T %s %s, with %s", about, reason, fmt.Sprintf(words, args...), other))
}

// Events about servers lie in namespace default, where more people read them than may know of a tenant's claims.
func TestNoEventOfAServerNamesAClaim(t *testing.T) {
	w := newWorld(t)
	w.addServer(aServer("s1"))
	w.addServer(aServer("s2", inState(v1alpha1.StateReserved), dirty, writtenFor("secret-old", "uid-before")))
	w.addClaim(aClaim("secret-new"))
	w.addClaim(aClaim("secret-old", naming("s2")))
	w.deliver(9)
	var told []string
	w.s.messages.recorder = toldAbout{&told}
	w.must(w.pass())
	slices.Sort(told)
	want := []string{
		"*v1alpha1.Server ServerAdopted Taken over, by the claim that spec.serverClaimRef names, with the data that a former claim of that name (uid-before) left there, with nobody",
		"*v1alpha1.ServerClaim ServerAdopted Took over server s2 with the data that a former claim of that name (uid-before) left there, with *v1alpha1.Server",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}
