// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

const rules = `package metalaw.selection

allow if input.candidate.rack != "r3"
reject contains {"code": "hot", "message": "its rack is hot"} if input.candidate.rack == "r2"
reject contains {"code": "tenant", "message": "kept for others"} if input.candidate.labels.size == "s"
reject contains {"code": "tenant", "message": "and for yet others"} if input.candidate.labels.size == "s"
score := count(input.candidate.labels) + object.get(input.fleet.claimedByRack, input.candidate.rack, 0) +
	10 * object.get(input.fleet.namespaceByRack, input.candidate.rack, 0) + 100 * object.get(input.fleet.freeByRack, input.candidate.rack, 0)
`

func compiled(t *testing.T, text string) *selection.Policy {
	t.Helper()
	p, found := selection.Compile(map[string][]byte{"selection.rego": []byte(text)})
	if p == nil {
		t.Fatal(found)
	}
	return p
}

// drawServers are servers in all the ways in which one can be out of reach.
func drawServers(r *rapid.T) []v1alpha1.Server {
	of := func(words ...string) string { return rapid.SampledFrom(words).Draw(r, "word") }
	servers := make([]v1alpha1.Server, rapid.SampledFrom([]int{0, 3, 6, 9, 12, 12}).Draw(r, "servers"))
	for i := range servers {
		s := &servers[i]
		s.Name = fmt.Sprintf("s%02d", (i*5)%12)
		s.Labels = map[string]string{"size": of("s", "m", "m"), "rack": of("r1", "r2", "r3", "r4")}
		s.Annotations = map[string]string{policies.RackMetadata: s.Labels["rack"]}
		s.Status.State, s.Status.PowerState = v1alpha1.StateAvailable, v1alpha1.PowerStateOff
		if rapid.IntRange(0, 1).Draw(r, "trouble") > 0 {
			continue // enough have to be free for a ranking
		}
		s.Status.State = v1alpha1.ServerState(of("Available", "Available", "Available", "Reserved"))
		s.Status.PowerState = v1alpha1.PowerState(of("Off", "Off", "Off", "On", ""))
		s.Spec.Unclaimable = rapid.IntRange(0, 5).Draw(r, "cordoned") == 0
		if holder := of("", "", "a", "b"); holder != "" {
			s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "team", Name: holder + s.Name}
			s.Annotations[v1alpha1.ClaimUIDAnnotation] = "uid-" + holder + s.Name
		}
		if rapid.IntRange(0, 4).Draw(r, "tainted") == 0 {
			s.Spec.Taints = []v1alpha1.Taint{{Key: "dedicated", Value: "x", Effect: "NoBind"}}
		}
	}
	return servers
}

func drawClaim(r *rapid.T) *v1alpha1.ServerClaim {
	c := &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mine", Labels: map[string]string{"app": "web"}}}
	switch rapid.IntRange(0, 9).Draw(r, "asks") {
	case 0:
		c.Spec.ServerSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"size": "m"}}
	case 1:
		c.Spec.ServerRef = &corev1.LocalObjectReference{Name: "s05"}
	}
	if rapid.Bool().Draw(r, "tolerates") {
		c.Spec.Tolerations = []v1alpha1.Toleration{{Key: "dedicated", Operator: v1alpha1.TolerationOpExists}}
	}
	text := rapid.SampledFrom([]string{"", `where: server.rack != "r1"`, `where: server.labels["rack"] == "r1" || 1 / server.cores > 0`,
		"alternatives:\n- where: server.rack == \"r4\"\n- selector: {matchLabels: {size: m}}\n- {}\npreferred:\n- {weight: 7, where: server.rack == \"r1\"}",
		"alternatives:\n- where: server.rack == \"r1\"\n- {}",
		"preferred:\n- {weight: -9, where: server.rack == \"r4\"}", "spread: {key: rack, claims: {matchLabels: {app: web}}}",
		"spread: {key: rack, maxSkew: 2, claims: {matchLabels: {app: web}}}\npreferred:\n- {weight: 9, where: server.rack == \"r4\"}"}).Draw(r, "placement")
	if text != "" {
		c.Annotations = map[string]string{v1alpha1.PlacementAnnotation: text}
	}
	return c
}

// drawHolders are the claims that hold the servers, of which some count for a spread.
func drawHolders(r *rapid.T, servers []v1alpha1.Server) []v1alpha1.ServerClaim {
	var claims []v1alpha1.ServerClaim
	for i := range servers {
		if ref := servers[i].Spec.ServerClaimRef; ref != nil {
			claims = append(claims, v1alpha1.ServerClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: ref.Name, UID: types.UID("uid-" + ref.Name),
					Labels: map[string]string{"app": rapid.SampledFrom([]string{"web", "db"}).Draw(r, "app")}},
				Spec: v1alpha1.ServerClaimSpec{ServerRef: &corev1.LocalObjectReference{Name: servers[i].Name}}})
		}
	}
	return claims
}

// bruteForce goes the way that package placement describes, with no help from the code under test.
func bruteForce(t *testing.T, policy *selection.Policy, c *v1alpha1.ServerClaim, servers []v1alpha1.Server, claims []v1alpha1.ServerClaim) (
	ranked []selection.Ranked, counts map[string]int,
) {
	t.Helper()
	spec, err := policies.ClaimSpecOf(c)
	if err != nil {
		t.Fatal(err)
	}
	p, found := policies.PlacementOf(c)
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	counts = map[string]int{}
	fleet := selection.Fleet{Now: 1, Total: int64(len(servers)), TotalByRack: map[string]int64{}, ClaimedByRack: map[string]int64{},
		FreeByRack: map[string]int64{}, NamespaceByRack: map[string]int64{}}
	var free, matching []selection.Candidate
	for i := range servers {
		s, facts := &servers[i], policies.CandidateOf(&servers[i], policies.Hardware{})
		fleet.TotalByRack[facts.Rack]++
		if s.Spec.ServerClaimRef != nil {
			fleet.Claimed++
			fleet.ClaimedByRack[facts.Rack]++
			if s.Spec.ServerClaimRef.Namespace == c.Namespace {
				fleet.NamespaceByRack[facts.Rack]++
			}
		} else if selection.Free(policies.ServerStateOf(s)) {
			fleet.FreeByRack[facts.Rack]++
		}
		if ok, _, _ := selection.Feasible(spec, policies.ServerStateOf(s)); ok {
			matching = append(matching, facts)
		}
		if ok, code, _ := selection.Eligible(spec, policies.ServerStateOf(s)); ok {
			free = append(free, facts)
		} else {
			counts[code]++
		}
	}
	places := placesOf(p, matching)
	for i := range servers {
		for k := range claims {
			if ref := servers[i].Spec.ServerClaimRef; ref != nil && ref.Name == claims[k].Name && claims[k].Labels["app"] == "web" {
				if _, known := places[policies.RackOf(&servers[i])]; known {
					places[policies.RackOf(&servers[i])]++
				}
			}
		}
	}
	for _, group := range grouped(p, free, places, counts) {
		var candidates []*selection.PreparedCandidate
		extra := map[string]float64{}
		for _, one := range group {
			candidates = append(candidates, selection.NewCandidate(one))
			extra[one.Name] = float64(p.Judge(&one).Score)
		}
		result, err := policy.Select(context.Background(), policies.SelectionClaimOf(c), candidates, fleet)
		if err != nil {
			t.Fatal(err)
		}
		for code, r := range result.Rejections {
			counts[code] += r.Count
		}
		if len(ranked) > 0 {
			continue
		}
		for _, one := range result.Ranked {
			ranked = append(ranked, selection.Ranked{Name: one.Name, Score: one.Score + extra[one.Name]})
		}
		slices.SortFunc(ranked, func(a, b selection.Ranked) int {
			return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Name, b.Name))
		})
	}
	return ranked, counts
}

func TestTheAnswerIsWhatBruteForceFinds(t *testing.T) {
	policy := compiled(t, rules)
	met, cases := map[string]int{}, 0
	wanted := []string{"a ranking of several", "no server", "servers of a later alternative", "a preference that decides",
		selection.CodeSelector, selection.CodeServerRef, selection.CodeClaimed, selection.CodeUnclaimable, selection.CodeTaint, selection.CodeState,
		selection.CodePower, selection.CodeNotAllowed, placement.CodePlacement, placement.CodeError, placement.CodeSpread, "hot", "tenant"}
	isMissing := func(what string) bool { return met[what] == 0 }
	for round := 0; round < 10 && slices.ContainsFunc(wanted, isMissing); round++ { // some of it is rare
		rapid.Check(t, func(r *rapid.T) {
			servers := drawServers(r)
			claims := drawHolders(r, servers)
			for range 5 {
				cases++
				checkAnswer(t, r, policy, drawClaim(r), servers, claims, met)
			}
		})
	}
	if missing := slices.DeleteFunc(wanted, func(what string) bool { return !isMissing(what) }); len(missing) > 0 {
		t.Errorf("%q were met in none of %d cases: too little of interest", missing, cases)
	}
}

// checkAnswer holds the answer about one claim against brute force, and notes what was met.
func checkAnswer(t *testing.T, r *rapid.T, policy *selection.Policy, c *v1alpha1.ServerClaim, servers []v1alpha1.Server, claims []v1alpha1.ServerClaim,
	met map[string]int,
) {
	t.Helper()
	ranked, counts := bruteForce(t, policy, c, servers, claims)
	got, err := Judge(context.Background(), policy, c, 0, FleetOf(servers, nil, claims, time.Unix(1, 0)))
	if err != nil || got.Failed != nil {
		r.Fatal(err, got.Failed)
	}
	var have []selection.Ranked
	fits := 0
	for _, v := range got.Verdicts {
		if v.Fits {
			fits++
		}
		if v.Fits && !v.Later {
			have = append(have, selection.Ranked{Name: v.Name, Score: *v.Score})
		}
		if v.Fits != (v.Rank > 0) || v.Fits && len(v.Reasons) > 0 || !v.Fits && len(v.Reasons) == 0 {
			r.Errorf("%+v", v)
		}
	}
	checkLasting(r, c, servers, got.Verdicts)
	for code := range counts {
		met[code]++
	}
	for what, happened := range map[string]bool{"a ranking of several": len(ranked) > 1, "no server": len(ranked) == 0,
		"servers of a later alternative": fits > len(have), "a preference that decides": prefers(have)} {
		if happened {
			met[what]++
		}
	}
	if diff := gocmp.Diff(ranked, have, cmpopts.EquateEmpty()); diff != "" {
		r.Errorf("ranking (- by brute force):\n%s", diff)
	}
	if diff := gocmp.Diff(counts, got.Counts, cmpopts.EquateEmpty()); diff != "" {
		r.Errorf("counts (- by brute force):\n%s", diff)
	}
	if fits != got.Fits || len(got.Verdicts) != len(servers) || got.Total != len(servers) ||
		got.Matching != len(servers)-counts[selection.CodeSelector]-counts[selection.CodeServerRef] {
		r.Errorf("%d of %d fit, and %d match: %+v", fits, len(servers), got.Matching, got)
	}
	if taken, ok := got.Taken(); ok != (len(ranked) > 0) || ok && taken.Name != ranked[0].Name {
		r.Errorf("taken is %v", taken)
	}
}

// checkLasting: what keeps the claim from a server for ever is told, whatever else is in the way.
func checkLasting(r *rapid.T, c *v1alpha1.ServerClaim, servers []v1alpha1.Server, verdicts []Verdict) {
	spec, err := policies.ClaimSpecOf(c)
	if err != nil {
		r.Fatal(err)
	}
	for _, v := range verdicts {
		at := slices.IndexFunc(servers, func(s v1alpha1.Server) bool { return s.Name == v.Name })
		ok, code, _ := selection.Feasible(spec, policies.ServerStateOf(&servers[at]))
		if told := slices.ContainsFunc(v.Reasons, func(reason Reason) bool { return reason.Code == code }); !ok && !told {
			r.Errorf("%s is never to be had because of %s: %+v", v.Name, code, v.Reasons)
		}
	}
}

// prefers says that a server is first because of what the claim would rather have: no policy of these tests scores so far apart.
func prefers(ranked []selection.Ranked) bool {
	return len(ranked) > 1 && ranked[0].Score-ranked[len(ranked)-1].Score >= 7
}
