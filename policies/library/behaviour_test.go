// SPDX-License-Identifier: Apache-2.0

package library

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/engine/admission"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// compiled is the default bundle with some policies of the library.
func compiled(t testing.TB, set map[string]string, names ...string) *bundle.Bundle {
	t.Helper()
	b, found, err := bundle.Compile(added(t, shippedBundle(t, policies.DefaultBundle), names, set), policies.Vocabulary())
	if err != nil || b == nil {
		t.Fatal(err, found)
	}
	return b
}

// outcome is the ranking by name, and the codes of what is turned away.
func outcome(t *testing.T, p *selection.Policy, claim selection.Claim, servers []selection.Candidate, fleet selection.Fleet) string {
	t.Helper()
	prepared := make([]*selection.PreparedCandidate, len(servers))
	for i, s := range servers {
		s.Health = cmpOr(s.Health, "OK")
		prepared[i] = selection.NewCandidate(s)
	}
	r, err := p.Select(t.Context(), claim, prepared, fleet)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, one := range r.Ranked {
		words = append(words, one.Name)
	}
	for _, code := range slices.Sorted(keys(r.Rejections)) {
		words = append(words, fmt.Sprintf("%s=%d", code, r.Rejections[code].Count))
	}
	return strings.Join(words, " ")
}

func cmpOr(word, instead string) string {
	if word == "" {
		return instead
	}
	return word
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func TestWhatEachPolicyOfTheLibraryDoes(t *testing.T) {
	racks := []selection.Candidate{{Name: "a", Rack: "r1"}, {Name: "b", Rack: "r2"}, {Name: "c", Rack: "r3"}, {Name: "d"}}
	tenants := []selection.Candidate{{Name: "acme", Labels: map[string]string{"example.com/tenant": "acme"}},
		{Name: "shared", Labels: map[string]string{}}}
	zone := []selection.Candidate{{Name: "a", Zone: "z1"}, {Name: "b", Zone: "z2"}}
	kept := selection.Fleet{TotalByZone: map[string]int64{"z1": 20, "z2": 20}, FreeByZone: map[string]int64{"z1": 2, "z2": 3}}
	// A namespace has two servers in the rack that is empty otherwise, and one in that which is full.
	const now = 100 * 24 * 60 * 60
	unlike := selection.Fleet{Now: now, TotalByRack: map[string]int64{"empty": 20, "full": 20}, ClaimedByRack: map[string]int64{"empty": 0, "full": 20},
		NamespaceByRack: map[string]int64{"empty": 2, "full": 1}}
	for name, c := range map[string]struct {
		policy  string
		set     map[string]string
		claim   selection.Claim
		servers []selection.Candidate
		fleet   selection.Fleet
		want    string
	}{
		"the rack with the fewest of the namespace comes first": {policy: "spread-over-racks", servers: racks,
			fleet: selection.Fleet{NamespaceByRack: map[string]int64{"r1": 2, "r2": 1}}, want: "c b a d"},
		"the smallest server that does comes first": {policy: "best-fit", servers: []selection.Candidate{
			{Name: "a", Cores: 128, MemoryGiB: 127}, {Name: "b", Cores: 32, MemoryGiB: 127}, {Name: "c", Cores: 32, MemoryGiB: 64}, {Name: "d"}}, want: "c b a d"},
		"the server with the fewest claims comes first": {policy: "wear-levelling",
			servers: []selection.Candidate{{Name: "a", TimesClaimed: 7}, {Name: "b", TimesClaimed: 90}, {Name: "c", TimesClaimed: 6}}, want: "c a b"},
		"a server that is larger comes before one that is failing": {policy: "best-fit", servers: []selection.Candidate{
			{Name: "a", Cores: 16, MemoryGiB: 64, Health: "Warning"}, {Name: "b", Cores: 128, MemoryGiB: 1024}}, want: "b a"},
		"and before one with GPUs": {policy: "best-fit", servers: []selection.Candidate{
			{Name: "a", Cores: 16, MemoryGiB: 64, GPUs: 1}, {Name: "b", Cores: 64, MemoryGiB: 512}, {Name: "c", Cores: 512, MemoryGiB: 4096}}, want: "b c a"},
		"a little smaller is more than place and rest": {policy: "best-fit", fleet: unlike, servers: []selection.Candidate{
			{Name: "a", Cores: 64, MemoryGiB: 320, Rack: "empty", AvailableSince: 1}, {Name: "b", Cores: 64, MemoryGiB: 256, Rack: "full", AvailableSince: now}}, want: "b a"},
		"a rack with fewer is more than size, place and rest": {policy: "spread-over-racks", fleet: unlike, servers: []selection.Candidate{
			{Name: "a", MemoryGiB: 64, Rack: "empty", AvailableSince: 1}, {Name: "b", MemoryGiB: 4096, GPUs: 8, Rack: "full", AvailableSince: now}}, want: "b a"},
		"and less than the health": {policy: "spread-over-racks", fleet: unlike, servers: []selection.Candidate{
			{Name: "a", MemoryGiB: 4096, GPUs: 8, Rack: "empty", AvailableSince: now}, {Name: "b", MemoryGiB: 64, Rack: "full", Health: "Warning"}}, want: "a b"},
		"a claim less is more than size, place and rest": {policy: "wear-levelling", fleet: unlike, servers: []selection.Candidate{
			{Name: "a", MemoryGiB: 64, Rack: "empty", AvailableSince: 1, TimesClaimed: 4},
			{Name: "b", MemoryGiB: 4096, GPUs: 8, Rack: "full", AvailableSince: now, TimesClaimed: 3}}, want: "b a"},
		"and less than the health, too": {policy: "wear-levelling", servers: []selection.Candidate{
			{Name: "a", MemoryGiB: 4096, GPUs: 8, TimesClaimed: 49}, {Name: "b", MemoryGiB: 64, Health: "Warning"}}, want: "a b"},
		"a server whose tenant is left empty is for nobody": {policy: "tenancy-by-namespace", claim: selection.Claim{Namespace: "acme"},
			servers: []selection.Candidate{{Name: "a", Labels: map[string]string{"example.com/tenant": ""}}, {Name: "b"}}, want: "b other-tenant=1"},
		"without parameters every image is allowed": {policy: "images-per-namespace", claim: selection.Claim{Namespace: "team", Image: "reg/os:1..2"},
			servers: tenants, want: "acme shared"},
		"failing hardware is turned away": {policy: "exclude-failing-hardware",
			servers: []selection.Candidate{{Name: "a", Health: "Warning"}, {Name: "b", Health: "Critical"}, {Name: "c", Health: "Unknown"}, {Name: "d"}},
			want:    "c d hardware-failing=2 unhealthy=1"},
		"what counts as failing is the author's to say": {policy: "exclude-failing-hardware", set: map[string]string{"failing": `{"Unknown"}`},
			servers: []selection.Candidate{{Name: "a", Health: "Warning"}, {Name: "c", Health: "Unknown"}}, want: "a hardware-failing=1"},
		"the last tenth of a zone is kept":          {policy: "reserve-per-zone", servers: zone, fleet: kept, want: "b zone-reserved=1"},
		"a claim of the priority may have them":     {policy: "reserve-per-zone", claim: selection.Claim{Priority: 100}, servers: zone, fleet: kept, want: "a b"},
		"a claim with the label may have them, too": {policy: "reserve-per-zone", set: map[string]string{"label": "vital"}, claim: selection.Claim{Labels: map[string]string{"vital": "true"}}, servers: zone, fleet: kept, want: "a b"},
		"a larger share can be kept":                {policy: "reserve-per-zone", set: map[string]string{"percent": "50"}, servers: zone, fleet: kept, want: "zone-reserved=2"},
		"a tenant's server is for its namespace":    {policy: "tenancy-by-namespace", claim: selection.Claim{Namespace: "acme"}, servers: tenants, want: "acme shared"},
		"and for no other":                          {policy: "tenancy-by-namespace", claim: selection.Claim{Namespace: "ace"}, servers: tenants, want: "shared other-tenant=1"},
		"a tenant can have several namespaces": {policy: "tenancy-by-namespace", set: map[string]string{"namespaces": `{"acme": ["acme-dev"]}`},
			claim: selection.Claim{Namespace: "acme-dev"}, servers: tenants, want: "acme shared"},
		"an image that is not allowed gets no server": {policy: "images-per-namespace", set: map[string]string{"images": `{"team": ["reg/os/*"]}`},
			claim: selection.Claim{Namespace: "team", Image: "reg/x:1"}, servers: tenants, want: "image-not-allowed=2"},
		"one that is allowed gets one": {policy: "images-per-namespace", set: map[string]string{"images": `{"team": ["reg/os/*"]}`},
			claim: selection.Claim{Namespace: "team", Image: "reg/os/x:1"}, servers: tenants, want: "acme shared"},
	} {
		t.Run(name, func(t *testing.T) {
			set := map[string]string{}
			for key, value := range c.set {
				set[c.policy+"."+key] = value
			}
			p := compiled(t, set, c.policy).Selection
			if !p.IsNative() {
				t.Error("it is interpreted")
			}
			for _, policy := range []*selection.Policy{p, p.Interpreted()} {
				if got := outcome(t, policy, c.claim, c.servers, c.fleet); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			}
		})
	}
}

func TestImagesAreRefusedInTheWordsOfTheScheduler(t *testing.T) {
	b := compiled(t, map[string]string{"images-per-namespace.images": `{"team": ["reg/os/*"]}`}, "images-per-namespace")
	claim := func(image string) map[string]any {
		return map[string]any{"metadata": map[string]any{"namespace": "team", "name": "c"}, "spec": map[string]any{"image": image}}
	}
	verdict, err := b.Admission.Admit(t.Context(), admission.Input{Operation: "CREATE", Kind: "ServerClaim", Object: claim("reg/x:1")})
	if err != nil {
		t.Fatal(err)
	}
	want := []admission.Finding{{Code: "image-not-allowed", Field: "spec.image", Message: "claims of namespace team may not boot this image, but: reg/os/*"}}
	if diff := cmp.Diff(want, verdict.Denials); diff != "" {
		t.Error(diff)
	}
	j, err := b.Selection.Judge(t.Context(), selection.Claim{Namespace: "team", Image: "reg/x:1"}, selection.NewCandidate(selection.Candidate{Health: "OK"}), selection.Fleet{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]selection.Reason{{Code: want[0].Code, Message: want[0].Message}}, j.Reasons); diff != "" {
		t.Error(diff)
	}
	verdict, err = b.Admission.Admit(t.Context(), admission.Input{Operation: "UPDATE", Kind: "ServerClaim", Object: claim("reg/x:1"), OldObject: claim("reg/x:1")})
	if err != nil || len(verdict.Denials) > 0 {
		t.Errorf("what is stored is held against another change: %v %v", verdict.Denials, err)
	}
}

func TestAllPoliciesTogetherAreEvaluatedNativelyAsTheInterpreterDoes(t *testing.T) {
	p := compiled(t, map[string]string{"images-per-namespace.images": `{"a": ["x/*", "y"]}`, "reserve-per-zone.label": "k",
		"tenancy-by-namespace.label": "k", "tenancy-by-namespace.namespaces": `{"x": ["a", "b"]}`}, Names()...).Selection
	rapid.Check(t, func(r *rapid.T) {
		word, number := rapid.SampledFrom([]string{"", "a", "b", "x", "y"}), rapid.Int64Range(0, 60)
		labels, counts := rapid.MapOfN(rapid.Just("k"), word, 0, 1), rapid.MapOfN(word, number, 0, 3)
		claim := selection.Claim{Namespace: word.Draw(r, "namespace"), Image: rapid.SampledFrom([]string{"", "a", "x", "x/1", "y"}).Draw(r, "image"), Priority: 4 * number.Draw(r, "priority"), Labels: labels.Draw(r, "labels")}
		fleet := selection.Fleet{TotalByZone: counts.Draw(r, "total"), FreeByZone: counts.Draw(r, "free"), NamespaceByRack: counts.Draw(r, "own")}
		all := make([]*selection.PreparedCandidate, rapid.IntRange(0, 8).Draw(r, "servers"))
		for i := range all {
			all[i] = selection.NewCandidate(selection.Candidate{Name: fmt.Sprint(i), Labels: labels.Draw(r, "labels"), Rack: word.Draw(r, "rack"), Zone: word.Draw(r, "zone"),
				Health:       rapid.SampledFrom([]string{"OK", "Warning", "Critical", "Unknown"}).Draw(r, "health"),
				TimesClaimed: number.Draw(r, "times"), Cores: 5 * number.Draw(r, "cores"), MemoryGiB: 50 * number.Draw(r, "memory")})
		}
		want, err := p.Interpreted().Select(context.Background(), claim, all, fleet)
		if err != nil {
			r.Fatal(err)
		}
		got, err := p.Select(context.Background(), claim, all, fleet)
		want.Lasting = got.Lasting // the interpreter does not count them
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			r.Fatal(err, diff)
		}
	})
}

// BenchmarkSelect chooses among 10,000 servers of 200 racks by the default bundle, and by it with every policy of the library.
func BenchmarkSelect(b *testing.B) {
	servers := make([]*selection.PreparedCandidate, 10_000)
	own, total, free := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for i := range servers {
		rack, zone := fmt.Sprintf("r%d", i%200), fmt.Sprintf("z%d", i%3)
		own[rack], total[zone], free[zone] = int64(i%7), total[zone]+1, free[zone]+1
		servers[i] = selection.NewCandidate(selection.Candidate{Name: fmt.Sprintf("server-%05d", i), Health: "OK", Rack: rack, Zone: zone, TimesClaimed: int64(i % 37),
			Cores: int64(16 << (i % 4)), MemoryGiB: int64(64 << (i % 5)), Labels: map[string]string{"example.com/tenant": fmt.Sprintf("t%d", i%9), "name": fmt.Sprint(i)}})
	}
	fleet := selection.Fleet{TotalByRack: own, ClaimedByRack: own, NamespaceByRack: own, TotalByZone: total, FreeByZone: free}
	sets := map[string][]string{"default": nil, "all": Names()}
	for _, name := range Names() {
		sets[name] = []string{name}
	}
	for _, name := range slices.Sorted(keys(sets)) {
		p := compiled(b, nil, sets[name]...).Selection
		b.Run("policy="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r, err := p.Select(b.Context(), selection.Claim{Namespace: "t1", Image: "reg/os:1"}, servers, fleet); err != nil || r.Allowed == 0 {
					b.Fatal(err, r)
				}
			}
		})
	}
}
