// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

func TestTheIndexAnswersAsALookAtEveryServerWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := New()
		servers, assumed := map[string]*v1alpha1.Server{}, map[string]types.UID{}
		version := 0
		name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { compare(t, x, servers, assumed) },
			"server": func(t *rapid.T) {
				version++
				s := aServer(name.Draw(t, "name"), at(strconv.Itoa(version)), drawn(t))
				servers[s.Name] = s
				x.Saw(s)
			},
			"gone": func(t *rapid.T) {
				n := name.Draw(t, "name")
				delete(servers, n)
				x.Gone(n)
			},
			"assume": func(t *rapid.T) {
				n := name.Draw(t, "name")
				s := servers[n]
				want := s != nil && entryOf(s, policies.Hardware{}).Eligible(selection.ClaimSpec{}) && assumed[n] == ""
				if _, ok := x.Assume(n, selection.ClaimSpec{}, "uid", "ns"); ok != want {
					t.Fatalf("assumed %s: %t, want %t", n, ok, want)
				}
				if want {
					assumed[n] = "uid"
				}
			},
			"release": func(t *rapid.T) {
				n := name.Draw(t, "name")
				x.Release(n, "another")
				if rapid.Bool().Draw(t, "its own") {
					delete(assumed, n)
					x.Release(n, "uid")
				}
			},
		})
	})
}

// drawn changes a server at random.
func drawn(t *rapid.T) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		for _, key := range []string{"k", "l", v1alpha1.ZoneLabel} {
			if value := rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, key); value != "" {
				labelled(key, value)(s)
			}
		}
		if rapid.Bool().Draw(t, "held") {
			writtenFor("claim", "uid-claim")(s)
		}
		s.Status.State = rapid.SampledFrom([]v1alpha1.ServerState{v1alpha1.StateAvailable, v1alpha1.StateReserved}).Draw(t, "state")
		s.Spec.Unclaimable = rapid.Bool().Draw(t, "cordoned")
		s.Status.PowerState = rapid.SampledFrom([]v1alpha1.PowerState{v1alpha1.PowerStateOff, v1alpha1.PowerStateOff, v1alpha1.PowerStateOn}).Draw(t, "power")
		if effect := rapid.SampledFrom([]v1alpha1.TaintEffect{"", v1alpha1.TaintEffectNoBind, v1alpha1.TaintEffectEvict}).Draw(t, "taint"); effect != "" {
			s.Spec.Taints = []v1alpha1.Taint{{Key: "t", Effect: effect}}
		}
	}
}

func addTo(counts map[string]int64, place string, by int64) {
	if place != "" {
		counts[place] += by
	}
}

// compare asks the index for what it is to be asked for, and looks at every server for the same.
func compare(t *rapid.T, x *Index, servers map[string]*v1alpha1.Server, assumed map[string]types.UID) {
	counts := selection.Fleet{TotalByZone: map[string]int64{}, ClaimedByZone: map[string]int64{}, TotalByRack: map[string]int64{}, ClaimedByRack: map[string]int64{},
		FreeByZone: map[string]int64{}, FreeByRack: map[string]int64{}}
	ownByZone := map[string]int64{}
	var held []string
	for name, s := range servers {
		e := entryOf(s, policies.Hardware{})
		counts.Total++
		addTo(counts.TotalByZone, e.Zone, 1)
		if e.State.Claimed {
			held = append(held, name)
		}
		if e.State.Claimed || assumed[name] != "" {
			counts.Claimed++
			addTo(counts.ClaimedByZone, e.Zone, 1)
			addTo(ownByZone, e.Zone, 1)
		} else if e.IsFree() && !e.State.Unclaimable {
			addTo(counts.FreeByZone, e.Zone, 1)
		}
	}
	if diff := cmp.Diff(counts, x.Counts(0)); diff != "" {
		t.Fatal(diff)
	}
	if own := x.CountsFor("ns", 0); len(ownByZone)+len(own.NamespaceByZone) > 0 && !cmp.Equal(ownByZone, own.NamespaceByZone) {
		t.Fatalf("the servers of the namespace: %v, want %v", own.NamespaceByZone, ownByZone)
	}
	slices.Sort(held)
	if diff := cmp.Diff(held, names(x.HeldBy(ClaimKey{Namespace: "ns", Name: "claim"}))); diff != "" {
		t.Fatal(diff)
	}
	for _, spec := range []selection.ClaimSpec{
		{}, {ServerRef: "a"},
		{Tolerations: []selection.Toleration{{Operator: "Exists"}}},
		{ServerRef: "a", Tolerations: []selection.Toleration{{Key: "t", Operator: "Exists"}}},
		{Selector: &selection.Selector{MatchLabels: map[string]string{"k": "1"}}, Tolerations: []selection.Toleration{{Key: "t", Operator: "Exists"}}},
		{Selector: &selection.Selector{MatchLabels: map[string]string{"k": "1"}}},
		{Selector: &selection.Selector{MatchLabels: map[string]string{"k": "1", "l": "2"}}},
		{Selector: &selection.Selector{MatchLabels: map[string]string{"k": "nowhere"}}},
		{Selector: &selection.Selector{MatchExpressions: []selection.Expression{{Key: "k", Operator: "In", Values: []string{"2"}}}}},
		{Selector: &selection.Selector{MatchExpressions: []selection.Expression{{Key: "k", Operator: "NotIn", Values: []string{"2"}}}}},
		{Selector: &selection.Selector{MatchExpressions: []selection.Expression{{Key: "k", Operator: "Near", Values: []string{"2"}}}}},
	} {
		ask(t, x, spec, servers, assumed)
	}
}

func ask(t *rapid.T, x *Index, spec selection.ClaimSpec, servers map[string]*v1alpha1.Server, assumed map[string]types.UID) {
	var fit, asked []string
	byCode := map[string]int{}
	for name, s := range servers {
		state := policies.ServerStateOf(s)
		state.Claimed = state.Claimed || assumed[name] != ""
		ok, code, _ := selection.Eligible(spec, state)
		if ok {
			fit = append(fit, name)
		}
		if code == selection.CodeSelector || code == selection.CodeServerRef {
			continue
		}
		asked = append(asked, name)
		if !ok {
			byCode[code]++
		}
	}
	slices.Sort(fit)
	slices.Sort(asked)
	total, matching, counted := x.Tally(spec)
	got := fmt.Sprint(names(x.Eligible(spec)), names(x.Matching(spec)), total, matching, counted)
	if want := fmt.Sprint(fit, asked, len(servers), len(asked), byCode); got != want {
		t.Fatalf("%+v: got %s, want %s", spec, got, want)
	}
}

func names(entries []*Entry) []string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	slices.Sort(all)
	return all
}

func TestAnAssumedServerStaysTakenUntilItIsReleased(t *testing.T) {
	x := fleetOf(aServer("a", at("1"), labelled("k", "v")))
	spec := selection.ClaimSpec{Selector: &selection.Selector{MatchLabels: map[string]string{"k": "v"}}}
	if _, ok := x.Assume("a", spec, "uid", "ns"); !ok {
		t.Fatal("a free server could not be had")
	}
	x.Saw(aServer("a", at("2"), labelled("k", "v"), labelled("l", "w")))
	if got := x.Eligible(spec); len(got) != 0 || x.Free("a", spec) != nil || x.Counts(0).Claimed != 1 {
		t.Error("a newer version undid the assumption")
	}
	x.Wrote(aServer("a", at("3"), labelled("k", "v"), writtenFor("c", "uid")))
	x.Release("a", "uid")
	if x.Free("a", spec) != nil || x.Counts(0).Claimed != 1 {
		t.Error("the server is free though it is written for the claim")
	}
	x.Saw(aServer("a", at("4"), labelled("k", "v")))
	if len(x.Eligible(spec)) != 1 || x.Counts(0).Claimed != 0 {
		t.Error("the server does not become free again")
	}
}

// ticking is a context that runs a function whenever a caller looks at it.
type ticking struct {
	context.Context //nolint:containedctx // it is one
	tick            func() error
}

func (c ticking) Err() error { return c.tick() }

func TestALongLookLetsTheIndexChangeAndEndsWithItsContext(t *testing.T) {
	x := New()
	for i := range 3 * 512 {
		x.Saw(aServer(fmt.Sprintf("s-%05d", i)))
	}
	looks := 0
	matching, err := x.MatchingWithin(ticking{t.Context(), func() error {
		looks++
		x.Saw(aServer(fmt.Sprint("new-", looks)))
		return nil
	}}, Everything)
	if err != nil || len(matching) != 3*512 || looks != 3 || x.Len() != 3*512+3 {
		t.Errorf("%d servers in %d looks, %v; then there are %d", len(matching), looks, err, x.Len())
	}
	if _, err := x.MatchingWithin(ticking{t.Context(), func() error { return context.Canceled }}, Everything); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
