// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/selection"
)

func free(name string, change func(*v1alpha1.Server)) v1alpha1.Server {
	s := v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"size": "m"}},
		Status: v1alpha1.ServerStatus{State: v1alpha1.StateAvailable, PowerState: v1alpha1.PowerStateOff}}
	change(&s)
	return s
}

func TestTheServerThatWillBeFreeSoonestIsNearest(t *testing.T) {
	claimed := func(s *v1alpha1.Server) {
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "other", Name: "theirs"}
	}
	servers := []v1alpha1.Server{
		free("a-other-size", func(s *v1alpha1.Server) { s.Labels["size"] = "l" }),
		free("b-cordoned", func(s *v1alpha1.Server) { s.Spec.Unclaimable = true }),
		free("c-claimed-and-rejected", func(s *v1alpha1.Server) { claimed(s); s.Labels["topology.kubernetes.io/zone"] = "hot" }),
		free("d-claimed", claimed),
		free("e-on-its-way", func(s *v1alpha1.Server) { s.Status.State = v1alpha1.StateCleanup }),
		free("e-parked", func(s *v1alpha1.Server) { s.Status.State = v1alpha1.StateParked }),
		free("f-claimed-and-better", func(s *v1alpha1.Server) { claimed(s); s.Labels["more"] = "labels" }),
		free("g-kept", func(s *v1alpha1.Server) {
			claimed(s)
			s.Spec.ReclaimPolicy, s.Annotations = v1alpha1.ReclaimPolicyRetain, map[string]string{v1alpha1.ClaimUIDAnnotation: "u", v1alpha1.ReleasedClaimAnnotation: "u"}
		}),
		free("h-in-maintenance", func(s *v1alpha1.Server) {
			s.Status.State, s.Spec.ServerMaintenanceRef = v1alpha1.StateMaintenance, &v1alpha1.ObjectReference{Name: "m"}
		}),
	}
	policy := compiled(t, "package metalaw.selection\n\nallow := true\nscore := count(input.candidate.labels)\n"+
		"reject contains {\"code\": \"hot\", \"message\": \"too hot\"} if input.candidate.zone == \"hot\"\n")
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mine"},
		Spec: v1alpha1.ServerClaimSpec{ServerSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"size": "m"}}}}
	got, err := Judge(context.Background(), policy, c, 0, FleetOf(servers, nil, nil, time.Unix(0, 0)))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, v := range got.Verdicts {
		codes := []string{v.Name}
		for _, r := range v.Reasons {
			codes = append(codes, r.Code)
		}
		order = append(order, strings.Join(codes, " "))
	}
	want := []string{"e-on-its-way not-available", "f-claimed-and-better claimed", "d-claimed claimed", "h-in-maintenance maintenance",
		"b-cordoned unclaimable", "e-parked not-available", "g-kept claimed", "c-claimed-and-rejected claimed hot", "a-other-size selector"}
	if !slices.Equal(order, want) {
		t.Errorf("got  %q\nwant %q", order, want)
	}
	passes := map[string]string{}
	for code := range got.Counts {
		passes[code] = got.Passes(code)
	}
	wantPasses := map[string]string{
		"not-available": "1 by itself; 1 when an operator of the fleet acts",
		"claimed":       "3 when another claim or a maintenance ends; 1 when an operator of the fleet acts",
		"maintenance":   "when another claim or a maintenance ends",
		"unclaimable":   "when an operator of the fleet acts",
		"selector":      "not, as the claim is",
	}
	if !maps.Equal(passes, wantPasses) {
		t.Errorf("got  %q\nwant %q", passes, wantPasses)
	}
}

func TestAServerThatRestsPassesWhenSomebodyActs(t *testing.T) {
	says := func(state v1alpha1.ServerState, kind string) v1alpha1.Server {
		return free("a", func(s *v1alpha1.Server) {
			s.Status.State = state
			if kind != "" {
				s.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue}}
			}
		})
	}
	for name, c := range map[string]struct {
		server v1alpha1.Server
		want   solve.Passing
	}{
		"one that is parked":                              {says(v1alpha1.StateParked, ""), solve.ByOperator},
		"one in Error":                                    {says(v1alpha1.StateError, ""), solve.ByOperator},
		"one that was found running":                      {says(v1alpha1.StateObserving, ""), solve.ByOperator},
		"one in a state of the bundle in which it rests":  {says("Burned", v1alpha1.ConditionReady), solve.ByOperator},
		"one whose way is barred":                         {says(v1alpha1.StateCleanup, v1alpha1.ConditionStalled), solve.ByOperator},
		"one in a state of the bundle that it will leave": {says("Burning", v1alpha1.ConditionReconciling), solve.ByItself},
		"one that is being wiped":                         {says(v1alpha1.StateCleanup, v1alpha1.ConditionReconciling), solve.ByItself},
		"one of which nothing is known yet":               {says("", ""), solve.ByItself},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Judge(t.Context(), nil, &v1alpha1.ServerClaim{}, 0, FleetOf([]v1alpha1.Server{c.server}, nil, nil, time.Unix(0, 0)))
			if err != nil {
				t.Fatal(err)
			}
			if v := got.Verdicts[0]; v.Passing(v.Reasons[0]) != c.want {
				t.Errorf("%+v passes %s", v, v.Passing(v.Reasons[0]).Words())
			}
		})
	}
}

func TestTheServerThatAClaimNamesIsNearest(t *testing.T) {
	servers := []v1alpha1.Server{free("a", func(*v1alpha1.Server) {}), free("b", func(s *v1alpha1.Server) {
		s.Labels["size"] = "l"
		s.Spec.Unclaimable = true
	})}
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mine"},
		Spec: v1alpha1.ServerClaimSpec{ServerRef: &corev1.LocalObjectReference{Name: "b"},
			ServerSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"size": "m"}}}}
	got, err := Judge(context.Background(), compiled(t, "package metalaw.selection\n\nallow := true\n"), c, 0, FleetOf(servers, nil, nil, time.Unix(0, 0)))
	if err != nil {
		t.Fatal(err)
	}
	if first := got.Verdicts[0].Name; first != "b" {
		t.Errorf("nearest is %s: %+v", first, got.Verdicts)
	}
}

func TestAPolicyThatFailsSaysNothingAboutAnyServer(t *testing.T) {
	policy := compiled(t, "package metalaw.selection\n\nallow := true\nscore := 1 if input.candidate.cores == 0\nscore := 2 if input.candidate.gpus == 0\n")
	servers := []v1alpha1.Server{free("a", func(*v1alpha1.Server) {}),
		free("b", func(s *v1alpha1.Server) { s.Spec.Unclaimable = true })}
	interrupted, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		policy *selection.Policy
		failed bool
		counts map[string]int
	}{
		"none":                    {context.Background(), nil, false, map[string]int{"unclaimable": 1}},
		"one that is interrupted": {interrupted, policy, true, map[string]int{"unclaimable": 1}},
		"one that fails for each": {context.Background(), policy, false, map[string]int{"unclaimable": 1, "policy-error": 1}},
	} {
		got, err := Judge(c.ctx, c.policy, &v1alpha1.ServerClaim{}, 0, FleetOf(servers, nil, nil, time.Unix(0, 0)))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := got.Taken(); ok || (got.Failed != nil) != c.failed || !got.Verdicts[0].Unknown || got.Verdicts[0].Fits || got.Fits != 0 {
			t.Errorf("%s: %+v", name, got)
		}
		if b := got.Verdicts[1]; b.Unknown || b.Reasons[0].Code != selection.CodeUnclaimable || !maps.Equal(got.Counts, c.counts) {
			t.Errorf("%s: %+v of %v", name, b, got.Counts)
		}
	}
}

func TestABindingIsSeenByTheNextClaimAndNotByTheFleetBefore(t *testing.T) {
	servers := []v1alpha1.Server{free("a", func(*v1alpha1.Server) {}), free("b", func(*v1alpha1.Server) {})}
	policy := compiled(t, "package metalaw.selection\n\nallow := true\nscore := input.fleet.claimed\n")
	before := FleetOf(servers, nil, nil, time.Unix(0, 0))
	after := before.Bind(&v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "first"}}, "a")
	for _, one := range []struct {
		fleet *Fleet
		want  string
		score float64
	}{{before, "a", 0}, {after, "b", 1}} {
		got, err := Judge(context.Background(), policy, &v1alpha1.ServerClaim{}, 0, one.fleet)
		if taken, _ := got.Taken(); err != nil || taken.Name != one.want || *taken.Score != one.score {
			t.Errorf("%v %v, want %s", taken, err, one.want)
		}
	}
}

// Admission says of the same placements that what turns servers away may pass by itself.
func TestAPlacementThatAsksForTheMomentMayPassByItself(t *testing.T) {
	servers := []v1alpha1.Server{free("a", func(s *v1alpha1.Server) { s.Labels["size"] = "l" }), free("b", func(*v1alpha1.Server) {})}
	const selector, perhaps = "a selector: not, as the claim is", "perhaps by itself, else not, as the claim is"
	for where, want := range map[string][]string{
		`server.health == "Critical"`:                          {"b placement: " + perhaps, selector},
		`server.timesClaimed > 5`:                              {"b placement: " + perhaps, selector},
		`100 / server.gpus > 3 && server.health == "Critical"`: {"b placement: " + perhaps, selector},
		`100 / server.gpus > 3 || server.health == "Critical"`: {"b placement-error: " + perhaps, selector},
		`server.gpus > 0`:                                      {selector, "b placement: not, as the claim is"},
	} {
		t.Run(where, func(t *testing.T) {
			c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mine",
				Annotations: map[string]string{v1alpha1.PlacementAnnotation: "where: '" + where + "'"}},
				Spec: v1alpha1.ServerClaimSpec{ServerSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"size": "m"}}}}
			a, err := Judge(t.Context(), nil, c, 0, FleetOf(servers, nil, nil, time.Unix(0, 0)))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range a.Verdicts {
				got = append(got, v.Name+" "+v.Reasons[0].Code+": "+v.Passing(v.Reasons[0]).Words())
			}
			if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

// What stays once the first reason has passed makes a server farther, and is not counted: the condition Bound counts each once.
func TestATaintAndACordonAreToldBehindWhatPassesSooner(t *testing.T) {
	held := func(s *v1alpha1.Server) {
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "other", Name: "theirs"}
	}
	tainted := func(s *v1alpha1.Server) {
		s.Spec.Taints = []v1alpha1.Taint{{Key: "broken", Effect: v1alpha1.TaintEffectNoBind}}
	}
	servers := []v1alpha1.Server{
		free("a-held-cordoned-and-tainted", func(s *v1alpha1.Server) { held(s); tainted(s); s.Spec.Unclaimable = true }),
		free("b-held-and-tainted", func(s *v1alpha1.Server) { held(s); tainted(s) }),
		free("c-parked-and-tainted", func(s *v1alpha1.Server) { tainted(s); s.Status.State = v1alpha1.StateParked }),
		free("d-tainted", tainted),
		free("e-held", held),
	}
	for name, c := range map[string]struct {
		named  string
		want   []string
		counts map[string]int
		passes string
	}{
		"any server": {"", []string{"e-held: claimed", "d-tainted: taint", "b-held-and-tainted: claimed, taint", "c-parked-and-tainted: not-available, taint",
			"a-held-cordoned-and-tainted: claimed, unclaimable, taint"}, map[string]int{"claimed": 3, "not-available": 1, "taint": 1},
			"when another claim or a maintenance ends"},
		"one that it names": {"b-held-and-tainted", []string{"b-held-and-tainted: claimed, taint", "a-held-cordoned-and-tainted: other-server",
			"c-parked-and-tainted: other-server", "d-tainted: other-server", "e-held: other-server"}, map[string]int{"claimed": 1, "other-server": 4},
			"when another claim or a maintenance ends"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mine"}}
			if c.named != "" {
				claim.Spec.ServerRef = &corev1.LocalObjectReference{Name: c.named}
			}
			a, err := Judge(t.Context(), compiled(t, "package metalaw.selection\n\nallow := true\n"), claim, 0, FleetOf(servers, nil, nil, time.Unix(0, 0)))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range a.Verdicts {
				var codes []string
				for _, r := range v.Reasons {
					codes = append(codes, r.Code)
				}
				got = append(got, v.Name+": "+strings.Join(codes, ", "))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if !maps.Equal(a.Counts, c.counts) || a.Passes(selection.CodeClaimed) != c.passes {
				t.Errorf("counts %v, and those that are claimed pass %s", a.Counts, a.Passes(selection.CodeClaimed))
			}
		})
	}
}
