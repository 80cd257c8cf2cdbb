// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// checkKept is what must hold between passes: a server is assumed for a claim only where it is kept for its gang, or a write of it is
// in doubt.
func (w *world) checkKept() {
	w.t.Helper()
	known := map[string]types.UID{}
	for _, g := range w.s.gangs {
		maps.Copy(known, g.kept)
	}
	for uid, server := range w.s.doubts {
		known[server] = uid
	}
	if diff := cmp.Diff(known, w.s.fleet.Assumed()); diff != "" {
		w.t.Fatalf("servers are assumed that nobody keeps, or kept and not assumed: %s", diff)
	}
}

// waitingGang has so many servers free for a gang of three that has waited for long, and enough that are not free.
func waitingGang(t *testing.T, free int) *world {
	w := gangOfThree(t, free)
	for i := range 3 {
		w.addServer(aServer(fmt.Sprintf("t-busy%d", i), inState("Cleanup")))
	}
	w.now = w.now.Add(policies.GangPatience)
	w.deliver(len(w.events))
	w.tick()
	return w
}

func TestWhatIsKeptForAGangIsReleasedThoughItIsWokenLate(t *testing.T) {
	w := waitingGang(t, 1)
	if got := len(w.s.fleet.Assumed()); got != 1 {
		t.Fatalf("%d servers are kept", got)
	}
	r := w.s.newRun(w.now) // a pass that has looked at the gangs already
	w.addServer(aServer("s9"))
	w.deliver(9)
	r.serveGang(context.Background(), gangKey{"ns", "db"})
	w.checkKept()
	want := map[string]types.UID{"s0": "uid-db-0", "s9": "uid-db-1"}
	if diff := cmp.Diff(want, w.s.fleet.Assumed()); diff != "" {
		t.Error(diff)
	}
}

func TestNothingIsKeptForAGangThatCouldNeverBeWhole(t *testing.T) {
	tainted := func(s *v1alpha1.Server) {
		s.Spec.Taints = []v1alpha1.Taint{{Key: "broken", Effect: v1alpha1.TaintEffectNoBind}}
	}
	onRack := func(rack string) func(*v1alpha1.Server) { return labelled(policies.RackMetadata, rack) }
	const never = "nothing is kept free for it, because the fleet has too few servers for all its members, free or not; "
	for name, tc := range map[string]struct {
		policy Policy
		third  func(*v1alpha1.Server)
		fourth func(*v1alpha1.Server)
		ask    string
		kept   int
		why    string
	}{
		"one is in use":                                {third: inState("Cleanup"), kept: 2},
		"one has a taint":                              {third: tainted, why: never},
		"the policy rejects one":                       {third: inState("Cleanup"), policy: byName{"s2": "kept-for-others"}, why: never},
		"one member can have none":                     {third: inState("Cleanup"), ask: "where: server.name == \"nowhere\"", why: never},
		"two members want the same":                    {third: inState("Cleanup"), ask: "where: server.name == \"s2\"", why: never},
		"a server without a rack is none for a spread": {third: inState("Cleanup"), ask: "spread: {key: rack}", why: never},
		"three racks, and one is not free":             {third: func(s *v1alpha1.Server) { onRack("r3")(s); inState("Cleanup")(s) }, ask: "spread: {key: rack}", kept: 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.policy != nil {
				w.s.policy = func() (Policy, engine.Revision) { return tc.policy, engine.Revision{Name: "another"} }
			}
			w.addServer(aServer("s0", onRack("r1")))
			w.addServer(aServer("s1", onRack("r2")))
			w.addServer(aServer("s2", tc.third))
			if tc.fourth != nil {
				w.addServer(aServer("s3", tc.fourth))
			}
			for i := range 3 {
				text := "gang: {name: db, size: 3}\n"
				if i > 0 || strings.HasPrefix(tc.ask, "spread") {
					text += tc.ask
				}
				w.addClaim(aClaim(fmt.Sprintf("db-%d", i), placed(text)))
			}
			w.now = w.now.Add(policies.GangPatience)
			w.deliver(9)
			w.tick()
			if got := len(w.s.fleet.Assumed()); got != tc.kept {
				t.Errorf("%d are kept", got)
			}
			if v, _ := w.s.Verdict("uid-db-0"); tc.why != "" && !strings.Contains(v.Message, tc.why) {
				t.Errorf("it is told %q", v.Message)
			}
			w.checkKept()
		})
	}
}

func TestAllThatASpreadGangCouldHaveIsKept(t *testing.T) {
	w := newWorld(t)
	for i := range 9 {
		in := v1alpha1.StateAvailable
		if i == 8 {
			in = "Cleanup"
		}
		w.addServer(aServer(fmt.Sprintf("s%d", i), labelled(policies.RackMetadata, fmt.Sprintf("r%d", i/3)), inState(in)))
	}
	for i := range 9 {
		w.addClaim(aClaim(fmt.Sprintf("db-%d", i), placed("gang: {name: db, size: 9}\nspread: {key: rack}\n")))
	}
	w.now = w.now.Add(policies.GangPatience)
	w.deliver(99)
	w.tick()
	if got := len(w.s.fleet.Assumed()); got != 8 {
		t.Errorf("%d are kept", got)
	}
	w.checkKept()
}

func TestAClaimThatWaitsForWhatIsKeptForAGangSaysSo(t *testing.T) {
	w := newWorld(t)
	inRack := func(rack string) func(*v1alpha1.Server) { return labelled(policies.RackMetadata, rack) }
	w.addServer(aServer("s0", inRack("r1")))
	w.addServer(aServer("s1", inRack("r2"), labelled("size", "large")))
	w.addServer(aServer("s2", inRack("r2"), labelled("size", "large"), inState("Cleanup")))
	for i := range 2 {
		w.addClaim(aClaim(fmt.Sprintf("db-%d", i), selecting("size", "large"), placed("gang: {name: db, size: 2}")))
	}
	w.now = w.now.Add(policies.GangPatience)
	w.deliver(9)
	w.tick()
	w.checkKept()

	web := placed("spread: {key: rack, claims: {}}")
	w.addClaim(aClaim("web-0", web))
	w.addServer(aServer("s3", inRack("r1")))
	w.deliver(9)
	w.tick()
	w.deliver(9)
	w.addClaim(aClaim("web-1", web))
	w.deliver(9)
	wait := w.tick()
	v, _ := w.s.Verdict("uid-web-1")
	if v.counts["spread"] != 1 || wait != 0 {
		t.Errorf("it is told %s %q, and the next pass is after %s", v.Reason, v.Message, wait)
	}
}

// What the members of a gang have already is not what the others could have.
func TestAGangDoesNotCountTheServersThatItHas(t *testing.T) {
	w := newWorld(t)
	w.addServer(aServer("s0", writtenFor("db-0", "uid-db-0")))
	w.addServer(aServer("s1"))
	w.addClaim(aClaim("db-0", placed("gang: {name: db, size: 3}"), naming("s0")))
	w.addClaim(aClaim("db-1", placed("gang: {name: db, size: 3}")))
	w.addClaim(aClaim("db-2", placed("gang: {name: db, size: 3}")))
	w.now = w.now.Add(policies.GangPatience)
	w.deliver(len(w.events))
	w.tick()
	if kept := w.s.fleet.Assumed(); len(kept) > 0 {
		t.Errorf("kept: %v", kept)
	}
	w.checkKept()
}

func TestAGangBeyondItsQuotaKeepsNothingFromItsNamespace(t *testing.T) {
	w := newWorld(t)
	w.quota = bundle.Quota{Namespaces: map[string]int{"ns": 2}}
	for i := range 4 {
		w.addServer(aServer(fmt.Sprintf("s%d", i)))
	}
	for i := range 3 {
		w.addClaim(aClaim(fmt.Sprintf("db-%d", i), inGang(3)))
	}
	w.addClaim(aClaim("single", func(c *v1alpha1.ServerClaim) { c.CreationTimestamp = metav1.NewTime(epoch.Add(time.Second)) }))
	w.now = w.now.Add(policies.GangPatience)
	w.deliver(9)
	w.tick()
	const want = `gang "db": it takes 3 servers, and the quota of the namespace allows its claims 2; ` +
		"none of its members gets one until the quota is raised or the gang is smaller"
	if v, _ := w.s.Verdict("uid-db-0"); v.Reason != v1alpha1.ReasonQuotaExceeded || v.Message != want {
		t.Errorf("it is told %s %q", v.Reason, v.Message)
	}
	if diff := cmp.Diff([]string{"single"}, w.boundClaims()); diff != "" {
		t.Error(diff)
	}
	w.checkKept()
}

// What is kept for a gang leaves it open where a claim that is spread may stand; the best servers may all be in such a place.
func TestASpreadClaimGetsAServerBehindManyThatItMayNotHaveYet(t *testing.T) {
	w := newWorld(t)
	w.under(best{most: selection.MaxRanked})
	inRack := func(rack string) func(*v1alpha1.Server) { return labelled(policies.RackMetadata, rack) }
	large := labelled("size", "large")
	w.addServer(aServer("z0", inRack("r1"), large))
	w.addServer(aServer("z1", inRack("r1")))
	w.addServer(aServer("y", inRack("r2"), large, inState("Cleanup")))
	for i := range 2 {
		w.addClaim(aClaim(fmt.Sprintf("db-%d", i), selecting("size", "large"), placed("gang: {name: db, size: 2}")))
	}
	w.now = w.now.Add(policies.GangPatience)
	w.deliver(9)
	w.tick()
	if kept := w.s.fleet.Assumed(); len(kept) != 1 {
		t.Fatalf("kept: %v", kept)
	}
	w.addServer(aServer("a-held", inRack("r2"), writtenFor("has", "uid-has"), inState("Reserved")))
	w.addClaim(aClaim("has", naming("a-held"), confirmedClaim))
	for i := range selection.MaxRanked + 6 {
		w.addServer(aServer(fmt.Sprintf("a%02d", i), inRack("r2")))
	}
	w.addClaim(aClaim("web", placed("spread: {key: rack, claims: {}}")))
	w.deliver(len(w.events))
	w.tick()
	if got := w.server("z1").Spec.ServerClaimRef; got == nil || got.Name != "web" {
		v, _ := w.s.Verdict("uid-web")
		t.Errorf("server z1 has %v, and the claim is told %s %q", got, v.Reason, v.Message)
	}
	w.checkKept()
}

// Nobody holds it, and nobody's end is to be waited for.
func TestAClaimThatNamesWhatIsKeptForAGangIsToldSo(t *testing.T) {
	const kept = "the server that spec.serverRef names is kept free for a gang that has waited for long and is short of servers; " +
		"this claim gets it once that gang has others or is gone, or else after the gang"
	const held = "the server that spec.serverRef names is held by another claim; this claim gets it once that one has ended and the server is Available"
	w := waitingGang(t, 1)
	w.addServer(aServer("t-held", writtenFor("other", "uid-other"), inState("Reserved")))
	later := func(c *v1alpha1.ServerClaim) { c.CreationTimestamp = metav1.NewTime(w.now) }
	w.addClaim(aClaim("wants-kept", naming("s0"), later))
	w.addClaim(aClaim("wants-held", naming("t-held"), later))
	w.deliver(len(w.events))
	w.tick()
	told := func() map[types.UID]string {
		all := map[types.UID]string{}
		for _, uid := range []types.UID{"uid-wants-kept", "uid-wants-held"} {
			v, _ := w.s.Verdict(uid)
			all[uid] = v.Reason + ": " + v.Message
		}
		return all
	}
	want := map[types.UID]string{"uid-wants-kept": "ServerTaken: " + kept, "uid-wants-held": "ServerTaken: " + held}
	if diff := cmp.Diff(want, told()); diff != "" {
		t.Error(diff)
	}
	w.now = w.now.Add(worthRewriting)
	w.s.restate()
	if diff := cmp.Diff(want, told()); diff != "" {
		t.Errorf("once it is counted anew: %s", diff)
	}
	w.checkKept()
	for i := range 3 {
		w.end(fmt.Sprintf("db-%d", i))
	}
	w.deliver(len(w.events))
	w.rest()
	if got := w.server("s0").Spec.ServerClaimRef; got == nil || got.Name != "wants-kept" {
		t.Errorf("once the gang is gone the server has %v", got)
	}
}
