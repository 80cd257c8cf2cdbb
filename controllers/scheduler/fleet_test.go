// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/selection"
)

func at(version string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.ResourceVersion = version }
}

func TestABindingHoldsUntilTheCacheShowsANewerVersion(t *testing.T) {
	free := func(f *fleet) bool { return len(f.eligible(selection.ClaimSpec{})) == 1 }
	f := fleetOf(aServer("a", at("10")))
	f.wrote(aServer("a", at("12"), writtenFor("c", "uid-c")))
	if free(f) {
		t.Fatal("what we wrote is not seen")
	}
	if f.saw(aServer("a", at("11"))) || free(f) {
		t.Error("an older version from the watch undid what we wrote")
	}
	if f.saw(aServer("a", at("12"), writtenFor("c", "uid-c"))) {
		t.Error("the watch showing what we wrote wakes for nothing")
	}
	if !f.saw(aServer("a", at("13"))) || !free(f) {
		t.Error("a newer version does not replace what we wrote")
	}
	f.gone("a")
	f.wrote(aServer("a", at("14")))
	if f.get("a") != nil {
		t.Error("the answer to our own write brought a deleted server back")
	}
	anew := aServer("a", at("2"))
	anew.UID = "another"
	if !f.saw(anew) || !free(f) {
		t.Error("a server made anew under the name is held against the version of the former one")
	}
}

func TestCountsFollowEveryChange(t *testing.T) {
	zone := func(z string) func(*v1alpha1.Server) { return labelled(v1alpha1.ZoneLabel, z) }
	f := fleetOf(aServer("a", zone("z1")), aServer("b", zone("z1")), aServer("c", zone("z2")))
	f.saw(aServer("b", at("2"), zone("z1"), writtenFor("c", "u")))
	f.saw(aServer("c", at("2"), zone("z3")))
	f.gone("a")
	want := selection.Fleet{Now: 7, Total: 2, Claimed: 1, TotalByZone: map[string]int64{"z1": 1, "z3": 1}, ClaimedByZone: map[string]int64{"z1": 1},
		TotalByRack: map[string]int64{}, ClaimedByRack: map[string]int64{}}
	if diff := cmp.Diff(want, f.fleetCounts(7)); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyWhatMattersToClaimsWakes(t *testing.T) {
	for _, tc := range []struct {
		name          string
		before, after []func(*v1alpha1.Server)
		wakes         bool
	}{
		{"a new version alone", nil, nil, false},
		{"power of a server in use", []func(*v1alpha1.Server){inState("Reserved")},
			[]func(*v1alpha1.Server){inState("Reserved"), func(s *v1alpha1.Server) { s.Status.PowerState = "On" }}, false},
		{"power of a free server", nil, []func(*v1alpha1.Server){func(s *v1alpha1.Server) { s.Status.PowerState = "On" }}, true},
		{"state", []func(*v1alpha1.Server){inState("Cleanup")}, nil, true},
		{"a label", nil, []func(*v1alpha1.Server){labelled("k", "v")}, true},
		{"a taint", nil, []func(*v1alpha1.Server){func(s *v1alpha1.Server) { s.Spec.Taints = []v1alpha1.Taint{{Key: "k"}} }}, true},
		{"a cordon", nil, []func(*v1alpha1.Server){func(s *v1alpha1.Server) { s.Spec.Unclaimable = true }}, true},
		{"a reference that is gone", []func(*v1alpha1.Server){writtenFor("c", "u")}, nil, true},
		{"the locator light", nil, []func(*v1alpha1.Server){func(s *v1alpha1.Server) { s.Spec.IndicatorLED = "Lit" }}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := fleetOf(aServer("a", tc.before...))
			if got := f.saw(aServer("a", append(tc.after, at("2"))...)); got != tc.wakes {
				t.Errorf("wakes %t, want %t", got, tc.wakes)
			}
		})
	}
}

func TestAReportReachesTheFactsOfItsServer(t *testing.T) {
	f := fleetOf(aServer("a"))
	prepared := f.get("a").prepare()
	inventory := &policyv1alpha1.ServerInventory{Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: "uuid-a"},
		Report: &policyv1alpha1.ProbeReport{Data: policyv1alpha1.ProbeData{CPU: []policyv1alpha1.CPU{{TotalCores: 8}}}}}
	if !f.sawInventory(inventory) || f.get("a").prepare() == prepared {
		t.Error("the facts were not made anew")
	}
	if f.sawInventory(inventory) {
		t.Error("the same report once more wakes")
	}
}

func TestVerdictsAreRewrittenSparingly(t *testing.T) {
	v := newVerdicts()
	verdict := func(reason string, counts map[string]int) Verdict {
		return Verdict{Reason: reason, Message: count{total: 40, matching: 12, byCode: counts}.String(), counts: counts}
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
	if got, ok := v.get("uid"); !ok || got.Message != "12 of 40 servers match: claimed 10, taint 2" {
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
	bound, _ := g.bind(uid, func() error {
		close(binding)
		<-proceed
		order = append(order, "bound")
		return nil
	})
	<-ended
	again, _ := g.bind(uid, func() error { t.Error("bound after its end"); return nil })
	if !bound || again || len(order) != 2 || order[0] != "bound" {
		t.Errorf("bound %t, again %t, order %v", bound, again, order)
	}
	g.forget(uid)
	if len(g.claims) != 0 {
		t.Error("a claim that is gone is remembered")
	}
}
