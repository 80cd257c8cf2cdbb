// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims/solve"
)

func member(name, size string) *v1alpha1.ServerClaim {
	return &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Finalizers: []string{v1alpha1.FinalizerServerClaim},
		Annotations: map[string]string{v1alpha1.PlacementAnnotation: "gang: {name: db, size: " + size + "}"}}}
}

func TestAGangGetsNoMoreServersThanTheQuotaOfItsNamespace(t *testing.T) {
	holds := func(s *v1alpha1.Server) {
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "team", Name: "former"}
	}
	ended := func(s *v1alpha1.Server) {
		holds(s)
		s.Annotations = map[string]string{v1alpha1.ReleasedClaimAnnotation: "uid"}
	}
	elsewhere := func(s *v1alpha1.Server) {
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "other", Name: "former"}
	}
	none := func(*v1alpha1.Server) {}
	policy := compiled(t, "package metalaw.selection\n\nallow := true\n")
	f := FleetOf([]v1alpha1.Server{free("a", holds), free("b", ended), free("c", elsewhere), free("d", none), free("e", none)}, nil, nil, time.Unix(0, 0))
	members := []Member{{Claim: member("db-0", "2")}, {Claim: member("db-1", "2")}}
	for limit, want := range map[int]string{
		1: "gang \"db\": it takes 2 servers, and the quota of the namespace allows its claims 1. None of its members gets one until the quota is raised or the gang is smaller",
		2: "the claims of the namespace have 1 of the 2 servers that its quota allows; the 2 of its gang that have none get servers together once another has ended, or the quota is raised",
		3: "",
	} {
		served, err := Serve(context.Background(), policy, bundle.Quota{Namespaces: map[string]int{"team": limit}}, members, f)
		if err != nil {
			t.Fatal(err)
		}
		got := Reason{}
		if first := served.Answers[0]; first.Refused != nil {
			got = *first.Refused
		}
		if got.Message != want || served.Complete != (want == "") || want != "" && got.Code != "QuotaExceeded" {
			t.Errorf("%d: %+v, complete %v", limit, got, served.Complete)
		}
	}
}

func TestAQuotaThatIsFullOfServersWhoseClaimsAreGoneSaysSo(t *testing.T) {
	orphaned := func(s *v1alpha1.Server) {
		heldBy("uid-former")(s)
		s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionClaimMissing, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonClaimNotFound}}
	}
	f := FleetOf([]v1alpha1.Server{free("a", orphaned), free("b", func(*v1alpha1.Server) {})}, nil, nil, time.Unix(0, 0))
	quota := bundle.Quota{Namespaces: map[string]int{"team": 1}}
	served, err := Serve(context.Background(), nil, quota, []Member{{Claim: &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "db"}}}}, f)
	want := "the claims of the namespace have 1 of the 1 servers that its quota allows; this one gets a server once another has ended, or the quota is raised" +
		"; counted are servers held for claims that are gone (1). Ask an operator of the fleet to release them, " +
		"or create such a claim again under its name, with the spec.serverRef that it had"
	if refused := served.Answers[0].Refused; err != nil || refused == nil || refused.Message != want {
		t.Errorf("%+v, %v", refused, err)
	}
}

// named says that a claim names a server, which is written for it or not.
func named(c *v1alpha1.ServerClaim, server string) *v1alpha1.ServerClaim {
	c.UID = types.UID("uid-" + c.Name)
	c.Spec.ServerRef = &corev1.LocalObjectReference{Name: server}
	return c
}

func heldBy(uid string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "team", Name: strings.TrimPrefix(uid, "uid-")}
		s.Annotations = map[string]string{v1alpha1.ClaimUIDAnnotation: uid}
	}
}

func TestAGangThatIsNotWholeSaysWhatIsMissing(t *testing.T) {
	with := func(c *v1alpha1.ServerClaim, change func(*v1alpha1.ServerClaim)) *v1alpha1.ServerClaim {
		change(c)
		return c
	}
	ignored := func(c *v1alpha1.ServerClaim) { c.Annotations[v1alpha1.OperationAnnotation] = v1alpha1.OperationIgnore }
	const incomplete = "1 of its 2 members exist; none of them gets a server until all do"
	const lost = "1 of its 2 members name a server that is not theirs; none of the others gets a server until that is mended"
	for name, c := range map[string]struct {
		others []*v1alpha1.ServerClaim
		want   string
	}{
		"alone":              {nil, incomplete},
		"whole":              {[]*v1alpha1.ServerClaim{member("db-0", "2"), member("db-1", "2")}, ""},
		"of different sizes": {[]*v1alpha1.ServerClaim{member("db-1", "3")}, "its members give different sizes: 2 and 3; none of them gets a server until they agree"},
		"too many":           {[]*v1alpha1.ServerClaim{member("db-1", "2"), member("db-2", "2")}, "3 claims say that they are members, and its size is 2; none of them gets a server until they agree"},
		"among other claims": {[]*v1alpha1.ServerClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "x"}}}, incomplete},
		"with one that the scheduler leaves alone":      {[]*v1alpha1.ServerClaim{with(member("db-1", "2"), ignored)}, incomplete},
		"with one that is left alone with its server":   {[]*v1alpha1.ServerClaim{with(named(member("db-1", "2"), "s"), ignored)}, ""},
		"with one that nobody prepared yet":             {[]*v1alpha1.ServerClaim{with(member("db-1", "2"), func(c *v1alpha1.ServerClaim) { c.Finalizers = nil })}, incomplete},
		"with one that names the server of another":     {[]*v1alpha1.ServerClaim{named(member("db-1", "2"), "other")}, lost},
		"with one that names a server which is no more": {[]*v1alpha1.ServerClaim{named(member("db-1", "2"), "gone")}, lost},
	} {
		var all []v1alpha1.ServerClaim
		for _, o := range c.others {
			all = append(all, *o)
		}
		f := FleetOf([]v1alpha1.Server{free("s", heldBy("uid-db-1")), free("other", heldBy("uid-x"))}, nil, all, time.Unix(0, 0))
		if got := Missing(bundle.Quota{}, []*v1alpha1.ServerClaim{member("db-0", "2")}, c.others, f); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Nothing that ends would ever give it servers.
func TestAGangThatItsQuotaNeverHasRoomForWaitsForThat(t *testing.T) {
	const tooSmall = "it takes 5 servers, and the quota of the namespace allows its claims 4. None of its members gets one until the quota is raised or the gang is smaller"
	four := bundle.Quota{Namespaces: map[string]int{"team": 4}}
	f := FleetOf([]v1alpha1.Server{free("a", func(*v1alpha1.Server) {})}, nil, nil, time.Unix(0, 0))
	for name, c := range map[string]struct {
		quota  bundle.Quota
		others []*v1alpha1.ServerClaim
		want   string
	}{
		"before it is whole":               {four, nil, tooSmall},
		"not where there is no quota":      {bundle.Quota{}, nil, "1 of its 5 members exist; none of them gets a server until all do"},
		"not where nobody knows its size":  {four, []*v1alpha1.ServerClaim{member("db-1", "4")}, "its members give different sizes: 4 and 5; none of them gets a server until they agree"},
		"once it is whole":                 {four, []*v1alpha1.ServerClaim{member("db-1", "5"), member("db-2", "5"), member("db-3", "5"), member("db-4", "5")}, tooSmall},
		"also where a member is forgotten": {four, []*v1alpha1.ServerClaim{named(member("db-1", "5"), "gone")}, tooSmall},
	} {
		if got := Missing(c.quota, []*v1alpha1.ServerClaim{member("db-0", "5")}, c.others, f); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	served, err := Serve(context.Background(), nil, four, []Member{{Claim: member("db-0", "5")}}, f)
	if refused := served.Answers[0].Refused; err != nil || refused == nil || *refused != (Reason{Code: "QuotaExceeded", Message: `gang "db": ` + tooSmall, Stage: solve.Namespace}) {
		t.Errorf("%+v, %v", refused, err)
	}
	back, err := Serve(context.Background(), nil, four, []Member{{Claim: named(member("db-0", "5"), "a")}}, f)
	if refused := back.Answers[0].Refused; err != nil || refused != nil {
		t.Errorf("one that asks for the server that it had asks for nothing together with others: %+v, %v", refused, err)
	}
}

// What is reserved for members counts as what they have: against the quota once, and in the search not at all.
func TestAMemberForWhichAServerIsReservedHasIt(t *testing.T) {
	policy := compiled(t, "package metalaw.selection\n\nallow := true\n")
	reserved, waits := member("db-0", "2"), member("db-1", "2")
	reserved.UID = "uid-db-0"
	f := FleetOf([]v1alpha1.Server{free("a", heldBy("uid-db-0")), free("b", func(*v1alpha1.Server) {})}, nil, []v1alpha1.ServerClaim{*reserved, *waits}, time.Unix(0, 0))
	for limit, want := range map[int]bool{1: false, 2: true} {
		served, err := Serve(context.Background(), policy, bundle.Quota{Namespaces: map[string]int{"team": limit}},
			[]Member{{Claim: reserved}, {Claim: waits}}, f)
		if err != nil || served.Complete != want {
			t.Errorf("quota %d: complete %v, %v", limit, served.Complete, err)
			continue
		}
		first, _ := served.Answers[0].Taken()
		second, got := served.Answers[1].Taken()
		if first.Name != "a" || got != want || want && (second.Name != "b" || served.After.claimed() != 2) {
			t.Errorf("quota %d: %+v, %+v", limit, first, second)
		}
	}
}
