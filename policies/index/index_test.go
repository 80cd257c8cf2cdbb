// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/selection"
)

func at(version string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.ResourceVersion = version }
}

func TestABindingHoldsUntilTheCacheShowsANewerVersion(t *testing.T) {
	free := func(f *Index) bool { return len(f.Eligible(selection.ClaimSpec{})) == 1 }
	f := fleetOf(aServer("a", at("10")))
	f.Wrote(aServer("a", at("12"), writtenFor("c", "uid-c")))
	if free(f) {
		t.Fatal("what we wrote is not seen")
	}
	if f.Saw(aServer("a", at("11"))).Matters() || free(f) {
		t.Error("an older version from the watch undid what we wrote")
	}
	if f.Saw(aServer("a", at("12"), writtenFor("c", "uid-c"))).Matters() {
		t.Error("the watch showing what we wrote wakes for nothing")
	}
	if !f.Saw(aServer("a", at("13"))).Matters() || !free(f) {
		t.Error("a newer version does not replace what we wrote")
	}
	f.Gone("a")
	f.Wrote(aServer("a", at("14")))
	if f.Get("a") != nil {
		t.Error("the answer to our own write brought a deleted server back")
	}
	anew := aServer("a", at("2"))
	anew.UID = "another"
	if !f.Saw(anew).Matters() || !free(f) {
		t.Error("a server made anew under the name is held against the version of the former one")
	}
}

func TestCountsFollowEveryChange(t *testing.T) {
	zone := func(z string) func(*v1alpha1.Server) { return labelled(v1alpha1.ZoneLabel, z) }
	f := fleetOf(aServer("a", zone("z1")), aServer("b", zone("z1")), aServer("c", zone("z2")))
	f.Saw(aServer("b", at("2"), zone("z1"), writtenFor("c", "u")))
	f.Saw(aServer("c", at("2"), zone("z3")))
	f.Gone("a")
	want := selection.Fleet{Now: 7, Total: 2, Claimed: 1, TotalByZone: map[string]int64{"z1": 1, "z3": 1}, ClaimedByZone: map[string]int64{"z1": 1},
		TotalByRack: map[string]int64{}, ClaimedByRack: map[string]int64{}, FreeByZone: map[string]int64{"z3": 1}, FreeByRack: map[string]int64{}}
	if diff := cmp.Diff(want, f.Counts(7)); diff != "" {
		t.Error(diff)
	}
	want.NamespaceByZone, want.NamespaceByRack = map[string]int64{"z1": 1}, map[string]int64{}
	if diff := cmp.Diff(want, f.CountsFor("ns", 7)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsAssumedForAClaimCountsForItsNamespace(t *testing.T) {
	f := fleetOf(aServer("a", labelled(v1alpha1.ZoneLabel, "z1")))
	before := f.CountsFor("team", 0)
	f.Assume("a", selection.ClaimSpec{}, "uid", "team")
	assumed := f.CountsFor("team", 0)
	f.Wrote(aServer("a", at("2"), labelled(v1alpha1.ZoneLabel, "z1"), writtenFor("c", "uid")))
	f.Release("a", "uid")
	for name, c := range map[string]struct{ got, want any }{
		"before it is assumed":           {before.NamespaceByZone, map[string]int64(nil)},
		"while it is assumed":            {assumed.NamespaceByZone, map[string]int64{"z1": 1}},
		"in another namespace":           {f.CountsFor("team", 0).NamespaceByZone, map[string]int64(nil)},
		"once it is written":             {f.CountsFor("ns", 0).NamespaceByZone, map[string]int64{"z1": 1}},
		"what was free, and is no more":  {f.Counts(0).FreeByZone, map[string]int64{}},
		"what was free before, as given": {before.FreeByZone, map[string]int64{"z1": 1}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
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
		{"a request to park", nil, []func(*v1alpha1.Server){func(s *v1alpha1.Server) {
			s.Annotations = map[string]string{v1alpha1.ParkRequestedAnnotation: "{}"}
		}}, true},
		{"a reference that is gone", []func(*v1alpha1.Server){writtenFor("c", "u")}, nil, true},
		{"the locator light", nil, []func(*v1alpha1.Server){func(s *v1alpha1.Server) { s.Spec.IndicatorLED = "Lit" }}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := fleetOf(aServer("a", tc.before...))
			if got := f.Saw(aServer("a", append(tc.after, at("2"))...)).Matters(); got != tc.wakes {
				t.Errorf("wakes %t, want %t", got, tc.wakes)
			}
		})
	}
}

func TestAReportReachesTheFactsOfItsServer(t *testing.T) {
	f := fleetOf(aServer("a"))
	prepared := f.Get("a").Candidate()
	inventory := &policyv1alpha1.ServerInventory{Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: "uuid-a"},
		Report: &policyv1alpha1.ProbeReport{Data: policyv1alpha1.ProbeData{CPU: []policyv1alpha1.CPU{{TotalCores: 8}}}}}
	if !f.SawInventory(inventory).Matters() || f.Get("a").Candidate() == prepared {
		t.Error("the facts were not made anew")
	}
	if f.SawInventory(inventory).Matters() {
		t.Error("the same report once more wakes")
	}
}
