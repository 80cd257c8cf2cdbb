// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// made is when a claim was made, after so many seconds.
func made(seconds int) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) {
		c.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(seconds) * time.Second))
	}
}

// dearGangs are gangs of three whose members ask for something else each, so that a search takes several passes, and servers for all.
func dearGangs(t *testing.T, gangs, servers int) *world {
	w := newWorld(t)
	w.limits = &searchLimits{easy: 0, inPass: 60}
	w.restart()
	for i := range servers {
		w.addServer(aServer(fmt.Sprintf("s%02d", i), labelled(policies.RackMetadata, fmt.Sprintf("r%d", i%3))))
	}
	for g := range gangs {
		for i := range 3 {
			w.addClaim(aClaim(fmt.Sprintf("gang%d-%d", g, i), made(g), placed(fmt.Sprintf(
				"gang: {name: gang%d, size: 3}\nspread: {key: rack, maxSkew: %d}\nwhere: server.name != 'm%d'\n", g, 1+i%2, i))))
		}
	}
	w.deliver(len(w.events))
	return w
}

func TestOthersGetServersWhileTheSearchForAGangGoesOn(t *testing.T) {
	w := dearGangs(t, 1, 9)
	w.addClaim(aClaim("single", made(9)))
	w.deliver(9)
	w.tick()
	if diff := cmp.Diff([]string{"single"}, w.boundClaims()); diff != "" {
		t.Fatal(diff)
	}
	const words = `gang "gang0": servers are being looked for; its members ask for so much, and of so many servers, that it takes a while`
	if v, _ := w.s.Verdict("uid-gang0-0"); v.Reason != v1alpha1.ReasonGangWaiting || v.Message != words {
		t.Errorf("it is told %s %q", v.Reason, v.Message)
	}
	for range 9 {
		w.tick()
	}
	if diff := cmp.Diff([]string{"gang0-0", "gang0-1", "gang0-2", "single"}, w.boundClaims()); diff != "" {
		t.Error(diff)
	}
	w.check()
}

func TestGangsWhoseSearchTakesSeveralPassesTakeTurns(t *testing.T) {
	w := dearGangs(t, 4, 11) // for three of the four
	var wait time.Duration
	for range 60 {
		wait = w.tick()
	}
	if got := len(w.boundClaims()); got != 9 {
		t.Errorf("%d claims are bound", got)
	}
	if len(w.s.searches.queue) > 0 {
		t.Errorf("the search goes on after %s for %v", wait, w.s.searches.queue)
	}
	w.checkKept()
}

func TestASearchGoesOnThoughItsMembersAreWrittenMeanwhile(t *testing.T) {
	w := dearGangs(t, 1, 2)
	w.limits.inPass = 1 // one try in a pass
	w.restart()
	for n := range 40 {
		for _, c := range w.claims() {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, "told", fmt.Sprint(n))
			w.must(w.api.Update(t.Context(), c))
			w.shown(c)
		}
		w.deliver(len(w.events))
		w.tick()
	}
	v, _ := w.s.Verdict("uid-gang0-0")
	if !strings.Contains(v.Message, "servers for 2 of its 3 members can be had now") {
		t.Errorf("it is told %s %q", v.Reason, v.Message)
	}
}

func TestAMemberThatHasNoMeaningLeavesItsGangWaiting(t *testing.T) {
	w := newWorld(t)
	w.addServer(aServer("s", labelled(policies.RackMetadata, "r")))
	w.addServer(aServer("t", labelled(policies.RackMetadata, "r")))
	spread := placed("gang: {name: db, size: 2}\nspread: {key: rack}\n")
	w.addClaim(aClaim("a", spread, func(c *v1alpha1.ServerClaim) {
		c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{}}
		for i := range 70 {
			c.Spec.ServerSelector.MatchLabels[fmt.Sprintf("l%d", i)] = "x"
		}
	}))
	w.addClaim(aClaim("b", spread))
	w.deliver(len(w.events))
	w.must(w.pass())
	for uid, want := range map[types.UID]string{"uid-a": v1alpha1.ReasonInvalidSelector, "uid-b": v1alpha1.ReasonGangWaiting} {
		if v, _ := w.s.Verdict(uid); v.Reason != want {
			t.Errorf("%s is told %s %q", uid, v.Reason, v.Message)
		}
	}
}

func TestASearchThatIsNotDueYetCostsNothing(t *testing.T) {
	w := dearGangs(t, 1, 9)
	w.must(w.pass())
	before := w.s.judgements.work
	w.s.pending.wakeAll()
	w.must(w.pass())
	if cost := w.s.judgements.work - before; cost != 0 {
		t.Errorf("it costs %d", cost)
	}
}

func TestAGangForWhichServersAreKeptIsNotSearchedForAgainForTheSakeOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		claim *v1alpha1.ServerClaim
		// asked is how often the policy may be asked: once for the claim, and once for each server that is kept.
		asked int
		gets  string
	}{
		"of a claim that comes behind it":                          {aClaim("other", made(9), selecting("rack", "7")), 0, ""},
		"of a claim that comes before it and could have none":      {aClaim("other", made(-9), selecting("rack", "7")), 2, ""},
		"of a claim that comes before it and takes one of the two": {aClaim("other", made(-9)), 99, "s0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := waitingGang(t, 2)
			kept := w.s.fleet.Assumed()
			if len(kept) != 2 {
				t.Fatalf("kept: %v", kept)
			}
			times := 0
			w.under(asked{times: &times})
			w.s.known.any, w.s.known.revision.Name = true, "test"
			w.addClaim(c.claim)
			w.deliver(9)
			w.must(w.pass())
			if times > c.asked {
				t.Errorf("the policy is asked %d times", times)
			}
			if c.gets == "" && !maps.Equal(kept, w.s.fleet.Assumed()) || c.gets != "" && w.server(c.gets).Spec.ServerClaimRef == nil {
				t.Errorf("kept: %v; on servers: %q", w.s.fleet.Assumed(), w.onServers())
			}
			w.checkKept()
		})
	}
}
