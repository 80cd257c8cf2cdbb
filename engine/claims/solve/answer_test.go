// SPDX-License-Identifier: Apache-2.0

package solve_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

const rules = `package metalaw.selection

allow if input.candidate.rack != "r3"
reject contains {"code": "hot", "message": "its rack is hot"} if input.candidate.rack == "r2"
reject contains {"code": "tenant", "message": "kept for others"} if input.candidate.labels.size == "s"
reject contains {"code": "tenant", "message": "and for yet others"} if input.candidate.labels.size == "s"
score := count(input.candidate.labels) + object.get(input.fleet.claimedByRack, input.candidate.rack, 0) +
	10 * object.get(input.fleet.namespaceByRack, input.candidate.rack, 0) + 100 * object.get(input.fleet.freeByRack, input.candidate.rack, 0)
`

// drawServers are servers in all the ways in which one can be out of reach.
func drawServers(r *rapid.T) []server {
	of := func(words ...string) string { return rapid.SampledFrom(words).Draw(r, "word") }
	servers := make([]server, rapid.SampledFrom([]int{0, 3, 6, 9, 12, 12}).Draw(r, "servers"))
	for i := range servers {
		servers[i] = free(fmt.Sprintf("s%02d", (i*5)%12), inRack(of("r1", "r2", "r3", "r4")))
		s := &servers[i]
		s.Labels = map[string]string{"size": of("s", "m", "m"), "rack": s.rack}
		if rapid.IntRange(0, 1).Draw(r, "trouble") > 0 {
			continue // enough have to be free for a ranking
		}
		s.State = of("Available", "Available", "Available", "Reserved")
		s.Power = of("Off", "Off", "Off", "On", "")
		s.Unclaimable = rapid.IntRange(0, 5).Draw(r, "cordoned") == 0
		if holder := of("", "", "a", "b"); holder != "" {
			s.Claimed = true
			s.holder = claims.Holder{Claim: claims.Key{Namespace: "team", Name: holder + s.Name}, UID: "uid-" + holder + s.Name}
		}
		if rapid.IntRange(0, 4).Draw(r, "tainted") == 0 {
			s.Taints = []selection.Taint{{Key: "dedicated", Value: "x", Effect: "NoBind"}}
		}
	}
	return servers
}

func drawClaim(t *testing.T, r *rapid.T) *claims.Claim {
	text := rapid.SampledFrom([]string{"", `where: server.rack != "r1"`, `where: server.labels["rack"] == "r1" || 1 / server.cores > 0`,
		"alternatives:\n- where: server.rack == \"r4\"\n- selector: {matchLabels: {size: m}}\n- {}\npreferred:\n- {weight: 7, where: server.rack == \"r1\"}",
		"alternatives:\n- where: server.rack == \"r1\"\n- {}",
		"preferred:\n- {weight: -9, where: server.rack == \"r4\"}", "spread: {key: rack, claims: {matchLabels: {app: web}}}",
		"spread: {key: rack, maxSkew: 2, claims: {matchLabels: {app: web}}}\npreferred:\n- {weight: 9, where: server.rack == \"r4\"}"}).Draw(r, "placement")
	return claim(t, "mine", text, func(c *claims.Claim) {
		c.Labels = map[string]string{"app": "web"}
		switch rapid.IntRange(0, 9).Draw(r, "asks") {
		case 0:
			c.Spec.Selector = &selection.Selector{MatchLabels: map[string]string{"size": "m"}}
		case 1:
			c.ServerRef, c.Spec.ServerRef = "s05", "s05"
		}
		if rapid.Bool().Draw(r, "tolerates") {
			c.Spec.Tolerations = []selection.Toleration{{Key: "dedicated", Operator: "Exists"}}
		}
	})
}

// drawHolders are the claims that hold the servers, of which some count for a spread.
func drawHolders(t *testing.T, r *rapid.T, servers []server) []*claims.Claim {
	var all []*claims.Claim
	for _, s := range servers {
		if s.Claimed {
			all = append(all, claim(t, s.holder.Claim.Name, "", func(c *claims.Claim) {
				c.Labels, c.ServerRef = map[string]string{"app": rapid.SampledFrom([]string{"web", "db"}).Draw(r, "app")}, s.Name
			}))
		}
	}
	return all
}

// bruteForce goes the way that package placement describes, with no help from the code under test.
func bruteForce(t *testing.T, policy *selection.Policy, c *claims.Claim, servers []server, holders []*claims.Claim) (
	ranked []selection.Ranked, counts map[string]int,
) {
	t.Helper()
	spec, p := c.Spec, c.Placement
	counts = map[string]int{}
	fleet := selection.Fleet{Now: 1, Total: int64(len(servers)), TotalByRack: map[string]int64{}, ClaimedByRack: map[string]int64{},
		FreeByRack: map[string]int64{}, NamespaceByRack: map[string]int64{}}
	var free, matching []selection.Candidate
	for i := range servers {
		s, facts := &servers[i], servers[i].Candidate()
		fleet.TotalByRack[facts.Rack]++
		if s.Claimed {
			fleet.Claimed++
			fleet.ClaimedByRack[facts.Rack]++
			if s.holder.Claim.Namespace == c.Namespace {
				fleet.NamespaceByRack[facts.Rack]++
			}
		} else if selection.Free(s.ServerState) {
			fleet.FreeByRack[facts.Rack]++
		}
		if ok, _, _ := selection.Feasible(spec, s.ServerState); ok {
			matching = append(matching, facts)
		}
		if ok, code, _ := selection.Eligible(spec, s.ServerState); ok {
			free = append(free, facts)
		} else {
			counts[code]++
		}
	}
	places := placesOf(p, matching)
	for i := range servers {
		for _, o := range holders {
			if s := &servers[i]; s.holder.Claim.Name == o.Name && o.Labels["app"] == "web" {
				if _, known := places[s.rack]; known {
					places[s.rack]++
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
		result, err := policy.Select(t.Context(), c.Asked, candidates, fleet)
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
			holders := drawHolders(t, r, servers)
			for range 5 {
				cases++
				checkAnswer(t, r, policy, drawClaim(t, r), servers, holders, met)
			}
		})
	}
	if missing := slices.DeleteFunc(wanted, func(what string) bool { return !isMissing(what) }); len(missing) > 0 {
		t.Errorf("%q were met in none of %d cases: too little of interest", missing, cases)
	}
}

// checkAnswer holds the answer about one claim against brute force, and notes what was met.
func checkAnswer(t *testing.T, r *rapid.T, policy *selection.Policy, c *claims.Claim, servers []server, holders []*claims.Claim,
	met map[string]int,
) {
	t.Helper()
	ranked, counts := bruteForce(t, policy, c, servers, holders)
	got := question{policy: policy, servers: servers, others: holders}.serve(t, c).answers[0]
	if got.Failed != nil {
		r.Fatal(got.Failed)
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

// checkLasting: what keeps the claim from a server for ever is told, also if more is in the way.
func checkLasting(r *rapid.T, c *claims.Claim, servers []server, verdicts []solve.Verdict) {
	for _, v := range verdicts {
		at := slices.IndexFunc(servers, func(s server) bool { return s.Name == v.Name })
		ok, code, _ := selection.Feasible(c.Spec, servers[at].ServerState)
		if told := slices.ContainsFunc(v.Reasons, func(reason solve.Reason) bool { return reason.Code == code }); !ok && !told {
			r.Errorf("%s is never to be had because of %s: %+v", v.Name, code, v.Reasons)
		}
	}
}

// prefers says that a server is first because of what the claim would rather have: no policy of these tests scores so far apart.
func prefers(ranked []selection.Ranked) bool {
	return len(ranked) > 1 && ranked[0].Score-ranked[len(ranked)-1].Score >= 7
}

// placesOf are the places of the servers that a placement accepts, each with 0; nil where it is not spread.
func placesOf(p *placement.Placement, all []selection.Candidate) map[string]int64 {
	spread := p.Spread()
	if spread == nil {
		return nil
	}
	counts := map[string]int64{}
	for i := range all {
		if place := spread.Place(&all[i]); place != "" && p.Judge(&all[i]).Accepted {
			counts[place] = 0
		}
	}
	return counts
}

// grouped are the servers that a placement accepts with these counts of its places, by alternative. It counts the others by code.
func grouped(p *placement.Placement, all []selection.Candidate, places map[string]int64, rejected map[string]int) [][]selection.Candidate {
	groups := make([][]selection.Candidate, p.Alternatives())
	for _, one := range all {
		j, code := p.Judge(&one), ""
		if spread := p.Spread(); spread != nil {
			if ok, _ := spread.Allows(spread.Place(&one), places); !ok {
				code = placement.CodeSpread
			}
		}
		switch {
		case !j.Accepted:
			rejected[j.Code]++
		case code != "":
			rejected[code]++
		default:
			groups[j.Alternative] = append(groups[j.Alternative], one)
		}
	}
	return groups
}
