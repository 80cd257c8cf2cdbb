// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// placed is a server of zone z and rack r.
func placed(change ...func(*Counted)) Counted {
	s := Counted{Zone: "z", Rack: "r", Free: true}
	for _, f := range change {
		f(&s)
	}
	return s
}

func claimedIn(namespace string) func(*Counted) {
	return func(s *Counted) { s.Claimed, s.Namespace = true, namespace }
}

func TestACensusCountsWhatIsClaimedAndWhatIsFree(t *testing.T) {
	one, none := map[string]int64{"z": 1}, map[string]int64{}
	for _, c := range []struct {
		name  string
		added []Counted
		gone  []Counted
		want  Fleet // by zone alone
		own   map[string]int64
	}{
		{name: "no server", want: Fleet{TotalByZone: none, ClaimedByZone: none, FreeByZone: none}},
		{name: "a free one", added: []Counted{placed()}, want: Fleet{Total: 1, TotalByZone: one, ClaimedByZone: none, FreeByZone: one}},
		{name: "one that is neither free nor claimed", added: []Counted{placed(func(s *Counted) { s.Free = false })},
			want: Fleet{Total: 1, TotalByZone: one, ClaimedByZone: none, FreeByZone: none}},
		{name: "a claimed one is not free", added: []Counted{placed(claimedIn("ns"))},
			want: Fleet{Total: 1, Claimed: 1, TotalByZone: one, ClaimedByZone: one, FreeByZone: none}, own: one},
		{name: "one that another namespace has", added: []Counted{placed(claimedIn("other"))},
			want: Fleet{Total: 1, Claimed: 1, TotalByZone: one, ClaimedByZone: one, FreeByZone: none}},
		{name: "one that somebody has", added: []Counted{placed(claimedIn(""))},
			want: Fleet{Total: 1, Claimed: 1, TotalByZone: one, ClaimedByZone: one, FreeByZone: none}},
		{name: "one of which nobody knows where it is", added: []Counted{{Free: true}},
			want: Fleet{Total: 1, TotalByZone: none, ClaimedByZone: none, FreeByZone: none}},
		{name: "one that was claimed and went", added: []Counted{placed(claimedIn("ns"))}, gone: []Counted{placed(claimedIn("ns"))},
			want: Fleet{TotalByZone: none, ClaimedByZone: none, FreeByZone: none}},
	} {
		t.Run(c.name, func(t *testing.T) {
			census := NewCensus()
			for _, s := range c.added {
				census.Add(s)
			}
			for _, s := range c.gone {
				census.Remove(s)
			}
			got := census.FleetFor("ns", 7)
			own := got.NamespaceByZone
			want := c.want
			want.Now = 7
			got.TotalByRack, got.ClaimedByRack, got.FreeByRack, got.NamespaceByRack, got.NamespaceByZone = nil, nil, nil, nil, nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.own, own); diff != "" {
				t.Error("of the namespace:", diff)
			}
		})
	}
}

func TestWhatACensusGaveAwayStaysAsItWas(t *testing.T) {
	census := NewCensus()
	census.Add(placed(claimedIn("ns")))
	given, clone := census.FleetFor("ns", 0), census.Clone()
	census.Add(placed(claimedIn("ns")))
	clone.Remove(placed(claimedIn("ns")))
	clone.Add(placed())
	for name, c := range map[string]struct {
		counts             Fleet
		claimed, own, free int64
	}{
		"what was given":   {given, 1, 1, 0},
		"what it was of":   {census.FleetFor("ns", 0), 2, 2, 0},
		"the clone, apart": {clone.FleetFor("ns", 0), 0, 0, 1},
	} {
		if got := []int64{c.counts.ClaimedByZone["z"], c.counts.NamespaceByRack["r"], c.counts.FreeByRack["r"]}; !cmp.Equal(got, []int64{c.claimed, c.own, c.free}) {
			t.Errorf("%s: claimed, of the namespace, free: %d, want %d", name, got, []int64{c.claimed, c.own, c.free})
		}
	}
	before := census.Changes()
	if census.Fleet(0); census.Changes() != before {
		t.Error("being asked counts as a change")
	}
	if census.Remove(placed(claimedIn("ns"))); census.Changes() == before {
		t.Error("a change does not count as one")
	}
}
