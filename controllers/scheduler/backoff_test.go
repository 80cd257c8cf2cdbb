// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// contested is a claim whose only server was changed by somebody else, which the watch has not shown yet.
func contested(t *testing.T) *world {
	w := newWorld(t)
	w.addServer(aServer("a"))
	w.addClaim(aClaim("claim"))
	w.deliver(9)
	w.changeServer(w.server("a"), labelled("rack", "7"))
	return w
}

func TestWhileTheWatchLagsAWriteIsRepeatedMoreAndMoreSeldom(t *testing.T) {
	w := contested(t)
	var waits []time.Duration
	for range 9 {
		waits = append(waits, w.tick())
	}
	const ms = time.Millisecond
	want := []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 5000 * ms, 5000 * ms}
	if !slices.Equal(waits, want) || w.writes != len(want) {
		t.Errorf("%d writes with waits of %v, want %v", w.writes, waits, want)
	}
}

func TestAPassThatSomethingElseWokeDoesNotRepeatAWriteThatIsNotDue(t *testing.T) {
	w := contested(t)
	w.tick()
	w.now = w.now.Add(-time.Millisecond)
	w.must(w.pass())
	if w.writes != 1 {
		t.Errorf("%d writes of the same version", w.writes)
	}
}

func TestAVersionThatTheWatchShowsIsTriedAtOnce(t *testing.T) {
	w := contested(t)
	for range 9 {
		w.tick()
	}
	w.now = w.now.Add(-time.Second)
	w.deliver(9)
	w.must(w.pass())
	if got := w.server("a").Spec.ServerClaimRef; got == nil || got.Name != "claim" {
		t.Errorf("server a has %v", got)
	}
	if len(w.s.backoff) != 0 {
		t.Error("a claim that has its server is still remembered")
	}
}

func TestAClaimThatWentIsNotRemembered(t *testing.T) {
	w := contested(t)
	w.tick()
	for _, c := range w.claims() {
		w.endClaim(c)
	}
	w.deliver(9)
	w.tick()
	if len(w.s.backoff) != 0 {
		t.Error("a claim that went is still remembered")
	}
}

func TestAClaimWhoseEveryWriteIsDeniedIsToldWhy(t *testing.T) {
	servers := schema.GroupResource{Group: "metal.ironcore.dev", Resource: "servers"}
	forbidden := apierrors.NewForbidden(servers, "a", errors.New("no rule allows it"))
	const words = "servers.metal.ironcore.dev is forbidden: no rule allows it"
	for name, tc := range map[string]struct {
		denied error
		want   string
		policy solve.Policy
	}{
		"forbidden": {forbidden, words, byName{}},
		"invalid":   {apierrors.NewInvalid(schema.GroupKind{Kind: "Server"}, "a", nil), "Server is invalid", byName{}},
		"forbidden under a policy that follows the fleet": {forbidden, words, spreading{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.under(tc.policy)
			w.addServer(aServer("a"))
			w.addServer(aServer("b"))
			w.addClaim(aClaim("claim"))
			w.deliver(9)
			w.before = func(client.Object) error { return tc.denied }
			wait := w.tick()
			v, _ := w.s.Verdict("uid-claim")
			if v.Reason != "BindingRefused" || !strings.HasSuffix(v.Message, tc.want) {
				t.Errorf("the claim is told %s %q, want %q", v.Reason, v.Message, tc.want)
			}
			if wait <= 0 {
				t.Error("nobody looks again")
			}
			for range 15 {
				wait = w.tick()
			}
			if wait != time.Minute {
				t.Errorf("it is denied again after %s", wait)
			}
			w.before = nil
			w.must(w.pass())
			if w.server("a").Spec.ServerClaimRef == nil {
				t.Error("the claim gets nothing though nothing is denied any more")
			}
		})
	}
}

func TestAClaimGetsAnotherServerWhereOneIsDenied(t *testing.T) {
	for name, policy := range map[string]solve.Policy{"by name": byName{}, "under a policy that follows the fleet": spreading{}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.under(policy)
			for _, name := range []string{"a", "b", "c"} {
				w.addServer(aServer(name))
			}
			w.addClaim(aClaim("first"))
			w.addClaim(aClaim("second"))
			w.deliver(9)
			writes := 0
			w.before = onlyServer("a", func(*v1alpha1.Server) error {
				writes++
				return apierrors.NewForbidden(schema.GroupResource{Resource: "servers"}, "a", errors.New("it is locked"))
			})
			w.tick()
			if diff := cmp.Diff([]string{"b", "c"}, w.onServers()); diff != "" || writes > 2 {
				t.Errorf("%d writes of the one that is denied: %s", writes, diff)
			}
		})
	}
}

func TestADeniedWriteToTheClaimIsToldAndLeavesOthersAlone(t *testing.T) {
	w := newWorld(t)
	w.addServer(aServer("a"))
	w.addServer(aServer("b"))
	w.addClaim(aClaim("first"))
	w.addClaim(aClaim("second"))
	w.deliver(9)
	w.before = func(o client.Object) error {
		if _, ok := o.(*v1alpha1.ServerClaim); ok && o.GetName() == "first" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "serverclaims"}, "first", errors.New("no rule allows it"))
		}
		return nil
	}
	w.tick()
	if v, _ := w.s.Verdict("uid-first"); v.Reason != "BindingRefused" {
		t.Errorf("the first claim is told %q", v.Reason)
	}
	if got := w.server("b").Spec.ServerClaimRef; got == nil || got.Name != "second" {
		t.Errorf("server b has %v", got)
	}
}

// locked answers the writes of servers whose name comes before that of the first that is not locked.
func locked(first string) func(client.Object) error {
	return func(o client.Object) error {
		if _, ok := o.(*v1alpha1.Server); ok && o.GetName() < first {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "servers"}, o.GetName(), errors.New("it is locked"))
		}
		return nil
	}
}

func TestAClaimGetsAServerBeyondThoseThatARankingHas(t *testing.T) {
	shipped, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	for name, policy := range map[string]solve.Policy{"by name": best{most: selection.MaxRanked}, "by the default policy": shipped.Selection} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.under(policy)
			const refused = 3*selection.MaxRanked + 5
			for i := range refused + 2 {
				w.addServer(aServer(fmt.Sprintf("s%03d", i)))
			}
			w.addClaim(aClaim("claim"))
			w.deliver(len(w.events))
			w.before = locked(fmt.Sprintf("s%03d", refused))
			most, before := 0, 0
			for range 30 {
				w.tick()
				most, before = max(most, w.writes-before), w.writes
			}
			if got := w.onServers(); !slices.Equal(got, []string{fmt.Sprintf("s%03d", refused)}) || w.writes != refused+2 || most > maxTries+1 {
				t.Errorf("%d writes, %d at once; on servers: %q", w.writes, most, got)
			}
		})
	}
}

func TestAClaimThatEveryServerIsRefusedToTriesThemInTurn(t *testing.T) {
	w := newWorld(t)
	w.under(best{most: 4})
	for i := range maxTries + 2 {
		w.addServer(aServer(fmt.Sprintf("s%02d", i)))
	}
	w.addClaim(aClaim("claim"))
	w.deliver(len(w.events))
	w.before = locked("t")
	var writes []int
	for range 6 {
		before := w.writes
		w.tick()
		writes = append(writes, w.writes-before)
	}
	if want := []int{maxTries, 2, maxTries, 2, maxTries, 2}; !slices.Equal(writes, want) {
		t.Errorf("it writes %v, want %v", writes, want)
	}
	if v, _ := w.s.Verdict("uid-claim"); v.Reason != v1alpha1.ReasonBindingRefused {
		t.Errorf("it is told %s %q", v.Reason, v.Message)
	}
}

func TestAClaimThatWaitsForBindingsUnderWayIsNotToldThatItsServersAreRefused(t *testing.T) {
	w := newWorld(t)
	w.gate = newGate()
	w.restart()
	apart := placed("spread: {key: rack, claims: {}}")
	for name, rack := range map[string]string{"a": "r1", "c": "r1", "d": "r2"} {
		w.addServer(aServer(name, labelled(policies.RackMetadata, rack)))
	}
	w.addServer(aServer("e", labelled(policies.RackMetadata, "r2"), writtenFor("has", "uid-has"), inState("Reserved")))
	w.addClaim(aClaim("has", naming("e"), confirmedClaim))
	w.addClaim(aClaim("web-0", apart))
	w.addClaim(aClaim("web-1", apart))
	w.deliver(9)
	w.gate.choose = func(n int) int { return n - 1 } // that of web-1, to c, comes first
	w.before = onlyServer("c", func(*v1alpha1.Server) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "servers"}, "c", errors.New("it is locked"))
	})
	w.tick()
	if v, told := w.s.Verdict("uid-web-1"); told {
		t.Errorf("it is told %s %q", v.Reason, v.Message)
	}
	w.tick()
	if diff := cmp.Diff([]string{"a", "d", "e"}, w.onServers()); diff != "" {
		t.Error(diff)
	}
}
