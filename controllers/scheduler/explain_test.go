// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// explained are rules that look at the server, at the claim and at the counts of the fleet.
const explained = `package metalaw.selection

allow if input.candidate.rack != "r4"
reject contains {"code": "hot", "message": "its rack is hot"} if {
	input.candidate.rack == "r2"
	input.claim.labels.app == "db"
}
reject contains {"code": "full", "message": "its rack has enough of the namespace"} if {
	input.fleet.namespaceByRack[input.candidate.rack] > 2
}
score := (count(input.candidate.labels) - 10 * object.get(input.fleet.claimedByRack, input.candidate.rack, 0)) + weight
weight := to_number(object.get(input.candidate.labels, "weight", "0"))
`

// drawFleet adds servers in many of the ways in which one can be out of reach, and the claims that hold some of them.
func drawFleet(t *rapid.T, w *world) {
	of := func(words ...string) string { return rapid.SampledFrom(words).Draw(t, "word") }
	for i := range rapid.IntRange(0, 8).Draw(t, "servers") {
		s := aServer(fmt.Sprintf("s%d", i), labelled("size", of("s", "m")), annotated(policies.RackMetadata, of("r1", "r1", "r2", "r3", "r4")))
		switch of("free", "free", "free", "held", "off", "cordoned", "tainted", "cleanup", "odd") {
		case "held":
			c := aClaim("holder-"+s.Name, naming(s.Name), claimLabelled("app", of("web", "db")))
			w.addClaim(c)
			writtenFor(c.Name, string(c.UID))(s)
			s.Status.State = v1alpha1.StateReserved
		case "off":
			s.Status.PowerState = v1alpha1.PowerState(of("On", ""))
		case "cordoned":
			s.Spec.Unclaimable = true
		case "tainted":
			s.Spec.Taints = []v1alpha1.Taint{{Key: "dedicated", Value: "x", Effect: v1alpha1.TaintEffectNoBind}}
		case "cleanup":
			s.Status.State = v1alpha1.StateCleanup
		case "odd": // the policy fails for it
			labelled("weight", "heavy")(s)
		}
		w.addServer(s)
	}
}

func claimLabelled(key, value string) func(*v1alpha1.ServerClaim) {
	return func(c *v1alpha1.ServerClaim) { c.Labels = map[string]string{key: value} }
}

// drawAsking is one claim, or the members of one gang.
func drawAsking(t *rapid.T) []*v1alpha1.ServerClaim {
	of := func(words ...string) string { return rapid.SampledFrom(words).Draw(t, "word") }
	size := rapid.SampledFrom([]int{1, 1, 2, 3, 4}).Draw(t, "members")
	same := of("", "", "spread: {key: rack, claims: {matchLabels: {app: web}}}\n", "spread: {key: rack, maxSkew: 2, claims: {}}\n", "own")
	all := make([]*v1alpha1.ServerClaim, size)
	for i := range all {
		text := same
		if same == "own" {
			text = of("", "spread: {key: rack, claims: {}}\n", "spread: {key: rack, maxSkew: 2, claims: {matchLabels: {app: db}}}\n")
		}
		if size > 1 {
			text += fmt.Sprintf("gang: {name: db, size: %d}\n", size)
		}
		text += of("", "", `where: server.rack == "r1"`, `where: server.labels["size"] == "m"`, `where: server.name in ["s1", "s2", "s3"]`,
			"preferred:\n- {weight: 50, where: server.rack == \"r3\"}",
			"alternatives:\n- where: server.rack == \"r3\"\n- selector: {matchLabels: {size: m}}\n- {}",
			`where: server.labels["rack"] == "r1" || 1 / server.cores > 0`)
		c := aClaim(fmt.Sprintf("mine-%d", i), claimLabelled("app", of("web", "db")))
		if text != "" {
			placed(text)(c)
		}
		switch of("", "", "", "selector", "tolerates") {
		case "selector":
			selecting("size", "m")(c)
		case "tolerates":
			c.Spec.Tolerations = []v1alpha1.Toleration{{Key: "dedicated", Operator: v1alpha1.TolerationOpExists}}
		}
		all[i] = c
	}
	return all
}

// serversOf are those that members would get by an explanation; none where some member would not get one.
func serversOf(told served, members []*v1alpha1.ServerClaim) map[string]string {
	got := map[string]string{}
	for i, a := range told.Answers {
		if one, ok := a.Taken(); ok && told.Complete {
			got[members[i].Name] = one.Name
		}
	}
	return got
}

// What people are told by metalaw explain and metalaw claim try has to be what becomes of their claims.
func TestWhatIsExplainedIsWhatTheSchedulerDoes(t *testing.T) {
	policy, found := selection.Compile(map[string][]byte{"selection.rego": []byte(explained)})
	if policy == nil {
		t.Fatal(found)
	}
	met, runs := map[string]int{}, 0
	isMissing := func(what string) bool { return met[what] == 0 }
	wanted := []string{"one bound", "one refused", "a gang bound", "a gang short", "a quota that is used up",
		"a policy that fails for all servers that it is asked about"}
	check := func(t *rapid.T) {
		runs++
		w := newWorld(t)
		w.policy = policy
		w.quota = bundle.Quota{Namespaces: map[string]int{"ns": rapid.SampledFrom([]int{99, 99, 99, 3}).Draw(t, "quota")}}
		drawFleet(t, w)
		holders := w.claims()
		asked := drawAsking(t)
		told := explain(t, w, holders, asked)
		for _, c := range asked {
			w.addClaim(c)
		}

		w.deliver(len(w.events))
		w.must(w.pass())
		w.check()

		compareTold(t, w, told, asked)
		meet(met, told, asked)
	}
	for round := 0; round < 10 && slices.ContainsFunc(wanted, isMissing); round++ { // some of it is rare
		rapid.Check(t, check)
	}
	if missing := slices.DeleteFunc(wanted, func(what string) bool { return !isMissing(what) }); len(missing) > 0 {
		t.Errorf("%q were met in none of %d runs: too little of interest", missing, runs)
	}
}

// served is what the command line says of some claims.
type served struct {
	Answers  []solve.Answer
	Complete bool
}

// explain is what the command line says of some claims, from what the API server has.
func explain(t *rapid.T, w *world, holders, asked []*v1alpha1.ServerClaim) served {
	var servers []v1alpha1.Server
	for _, s := range w.servers() {
		servers = append(servers, *s)
	}
	all := make([]*claims.Claim, len(holders))
	for i, c := range holders {
		all[i] = policies.ClaimOf(c, bundle.Priority{Max: 1000}, w.now)
	}
	members := make([]*claims.Claim, len(asked))
	for i, c := range asked {
		members[i] = policies.ClaimOf(c, bundle.Priority{Max: 1000}, w.now)
	}
	snapshot := index.SnapshotOf(servers, nil, all, w.now)
	snapshot.Policy, snapshot.Quota = w.policy, w.quota
	told := served{Complete: true}
	for _, r := range solve.Solve(context.Background(), snapshot, members, solve.Want{Mode: solve.Reasons}) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		told.Complete = told.Complete && r.Action != solve.Refuse
		told.Answers = append(told.Answers, *r.Answer)
	}
	return told
}

// compareTold holds what was told against what a pass did: the server of each claim, or the counts by code.
func compareTold(t *rapid.T, w *world, told served, asked []*v1alpha1.ServerClaim) {
	got := map[string]string{}
	for _, c := range w.claims() {
		if ref := c.Spec.ServerRef; ref != nil {
			got[c.Name] = ref.Name
		}
	}
	for _, s := range w.servers() {
		if ref := s.Spec.ServerClaimRef; ref != nil && s.Status.State == v1alpha1.StateReserved {
			delete(got, ref.Name) // it was there before
		}
	}
	if diff := gocmp.Diff(serversOf(told, asked), got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("servers (- explained, + bound):\n%s", diff)
	}
	if told.Complete {
		return
	}
	for i, a := range told.Answers {
		v, known := w.s.Verdict(asked[i].UID)
		if !known {
			t.Fatalf("%s got no server, and no verdict", asked[i].Name)
		}
		if a.Refused != nil {
			if v.Reason != a.Refused.Code {
				t.Errorf("%s is refused for %s, and explained as %s", asked[i].Name, v.Reason, a.Refused.Code)
			}
			continue
		}
		if len(asked) == 1 {
			compareFailures(t, v, a)
		}
		if p, _ := policies.PlacementOf(asked[i]); a.Lacking != "" && p.Alternatives() > 1 {
			continue // the scheduler looks at no alternative behind the first that can be had
		}
		// Servers that the claim does not ask for are no part of a verdict's counts: it gives the number of those that match.
		counts := maps.Clone(a.Counts)
		delete(counts, selection.CodeSelector)
		if diff := gocmp.Diff(counts, v.counts, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("counts of %s (- explained, + told):\n%s", asked[i].Name, diff)
		}
	}
}

// compareFailures holds whether a policy that fails keeps a claim alone from its servers.
func compareFailures(t *rapid.T, v Verdict, a solve.Answer) {
	if isAlone := a.Counts[selection.CodePolicyError] > 0 && len(a.Counts) == 1; isAlone && v.Reason != v1alpha1.ReasonGuardError ||
		a.Counts[selection.CodePolicyError] == 0 && v.Reason == v1alpha1.ReasonGuardError {
		t.Errorf("it is told %q, and explained are %v", v.Reason, a.Counts)
	}
}

// meet notes what a run was about.
func meet(met map[string]int, told served, asked []*v1alpha1.ServerClaim) {
	what := "a gang short"
	switch {
	case told.Answers[0].Refused != nil:
		what = "a quota that is used up"
	case len(asked) == 1 && told.Complete:
		what = "one bound"
	case len(asked) == 1 && told.Answers[0].Counts[selection.CodePolicyError] > 0:
		what = "a policy that fails for all servers that it is asked about"
	case len(asked) == 1:
		what = "one refused"
	case told.Complete:
		what = "a gang bound"
	}
	met[what]++
}
