// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// drawMembers are claims of one gang that ask for different racks, sizes and names.
func drawMembers(r *rapid.T, spreads []string) []Member {
	members := make([]Member, rapid.IntRange(2, 4).Draw(r, "members"))
	same, text := rapid.Bool().Draw(r, "same"), ""
	for i := range members {
		if i == 0 || !same {
			text = rapid.SampledFrom(spreads).Draw(r, "spread") + fmt.Sprintf("gang: {name: g, size: %d}\n", len(members)) +
				rapid.SampledFrom([]string{"", `where: server.rack == "r1"`, `where: server.rack != "r1"`,
					`where: server.rack == "r4" || server.name == "s05"`, `where: server.labels["size"] == "m"`}).Draw(r, "placement")
		}
		members[i].Claim = &v1alpha1.ServerClaim{}
		members[i].Claim.Namespace, members[i].Claim.Name = "team", fmt.Sprint("m", i)
		members[i].Claim.Annotations = map[string]string{v1alpha1.PlacementAnnotation: text}
	}
	return members
}

// allowed are the servers that each member could have if it were alone, by what each single rule says.
func allowed(t *testing.T, policy *selection.Policy, m Member, servers []v1alpha1.Server) []string {
	t.Helper()
	ranked, _ := bruteForce(t, policy, m.Claim, servers, nil)
	var names []string
	for _, one := range ranked {
		names = append(names, one.Name)
	}
	return names
}

// waysFor tries every way to give each member a server of its own.
func waysFor(could [][]string, taken []string) bool {
	if len(could) == 0 {
		return true
	}
	for _, name := range could[0] {
		if !slices.Contains(taken, name) && waysFor(could[1:], append(slices.Clone(taken), name)) {
			return true
		}
	}
	return false
}

// checkTaken sees that each member takes one that it could have, and none that another has. It says how many do not take their best.
func checkTaken(r *rapid.T, got Served, could [][]string) (late int) {
	var taken []string
	for i, a := range got.Answers {
		one, ok := a.Taken()
		if ok && (!slices.Contains(could[i], one.Name) || got.Complete && slices.Contains(taken, one.Name)) {
			r.Errorf("member %d takes %s; it could have %q, and %q are taken", i, one.Name, could[i], taken)
		}
		if ok && one.Name != could[i][0] {
			late++
		}
		taken = append(taken, one.Name)
	}
	return late
}

func TestAGangIsServedWhereBruteForceFindsAWay(t *testing.T) {
	policy := compiled(t, rules)
	runs, whole, late, short := 0, 0, 0, 0
	rapid.Check(t, func(r *rapid.T) {
		runs++
		servers, members := drawServers(r), drawMembers(r, []string{""})
		before := FleetOf(servers, nil, nil, time.Unix(1, 0))
		got, err := Serve(context.Background(), policy, bundle.Quota{}, members, before)
		if err != nil {
			r.Fatal(err)
		}
		var could [][]string
		for _, m := range members {
			could = append(could, allowed(t, policy, m, servers))
		}
		want := waysFor(could, nil)
		switch {
		case want:
			whole++
		default:
			short++
		}
		if got.Complete != want {
			r.Errorf("complete is %t, and by brute force it is %t: %q", got.Complete, want, could)
		}
		late += checkTaken(r, got, could)
		if !got.Complete && got.After != before || got.Complete && got.After.claimed() != before.claimed()+int64(len(members)) {
			r.Errorf("%d are claimed then, and %d before", got.After.claimed(), before.claimed())
		}
	})
	if least := runs / 20; whole < least || short < least || late < least {
		t.Errorf("of %d gangs %d are served and %d not, and %d members take a server that is not their best: too few of interest", runs, whole, short, late)
	}
}

// ordersFor tries every order and every server, of members who keep apart from each other by rack.
func ordersFor(could [][]string, racks map[string]string, counts []map[string]int64, spreads []*placement.Spread, left []int, taken []string) bool {
	if len(left) == 0 {
		return true
	}
	for at, m := range left {
		rest := slices.Delete(slices.Clone(left), at, at+1)
		for _, name := range could[m] {
			if slices.Contains(taken, name) {
				continue
			}
			if spreads[m] != nil {
				if ok, _ := spreads[m].Allows(racks[name], counts[m]); !ok {
					continue
				}
			}
			next := make([]map[string]int64, len(counts))
			for i := range counts {
				next[i] = maps.Clone(counts[i])
				if _, known := next[i][racks[name]]; known {
					next[i][racks[name]]++
				}
			}
			if ordersFor(could, racks, next, spreads, rest, append(slices.Clone(taken), name)) {
				return true
			}
		}
	}
	return false
}

func TestASpreadGangWhoseMembersAskForTheSameIsServedWhereBruteForceFindsAWay(t *testing.T) {
	policy := compiled(t, rules)
	for name, spreads := range map[string][]string{
		"all spread alike":       {"spread: {key: rack}\n"},
		"all with a wider skew":  {"spread: {key: rack, maxSkew: 2}\n"},
		"spread in several ways": {"", "spread: {key: rack}\n", "spread: {key: rack, maxSkew: 2}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			runs, whole, reordered := 0, 0, 0
			rapid.Check(t, func(r *rapid.T) {
				runs++
				servers, members := drawServers(r), drawMembers(r, spreads)
				got, err := Serve(context.Background(), policy, bundle.Quota{}, members, FleetOf(servers, nil, nil, time.Unix(1, 0)))
				if err != nil {
					r.Fatal(err)
				}
				var feasible []selection.Candidate
				racks := map[string]string{}
				for i := range servers {
					facts := policies.CandidateOf(&servers[i], policies.Hardware{})
					racks[servers[i].Name] = facts.Rack
					if ok, _, _ := selection.Feasible(selection.ClaimSpec{}, policies.ServerStateOf(&servers[i])); ok {
						feasible = append(feasible, facts)
					}
				}
				var could [][]string
				var left []int
				var counts []map[string]int64
				var apart []*placement.Spread
				alike := true
				for i, m := range members {
					p, _ := policies.PlacementOf(m.Claim)
					could, left, apart = append(could, allowed(t, policy, m, servers)), append(left, i), append(apart, p.Spread())
					counts = append(counts, placesOf(p, feasible))
					alike = alike && m.Claim.Annotations[v1alpha1.PlacementAnnotation] == members[0].Claim.Annotations[v1alpha1.PlacementAnnotation]
				}
				want := ordersFor(could, racks, counts, apart, left, nil)
				if want {
					whole++
				}
				if got.Complete && !want || alike && got.Complete != want {
					r.Errorf("complete is %t, and by brute force it is %t: %q", got.Complete, want, could)
				}
				reordered += checkTaken(r, got, could)
			})
			if whole < runs/50 || reordered < runs/50 {
				t.Errorf("of %d gangs %d can be served, and %d members take a server that is not their best: too few of interest", runs, whole, reordered)
			}
		})
	}
}

// The first takes the only server of the second. Without spread it would make way.
func TestASpreadGangWhoseMembersAskForDifferentServersMayWait(t *testing.T) {
	inRack := func(name, rack string) v1alpha1.Server {
		return free(name, func(s *v1alpha1.Server) { s.Annotations = map[string]string{policies.RackMetadata: rack} })
	}
	servers := []v1alpha1.Server{inRack("a", "r1"), inRack("b", "r2")}
	policy := compiled(t, "package metalaw.selection\n\nallow := true\n")
	for name, c := range map[string]struct {
		spread, first, second string
		complete              bool
		short                 string
	}{
		"without spread it makes way":       {"", "", "\nwhere: server.name == \"a\"", true, ""},
		"with spread the gang waits":        {"\nspread: {key: rack}", "", "\nwhere: server.name == \"a\"", false, "m1"},
		"in another order it is served":     {"\nspread: {key: rack}", "\nwhere: server.name == \"a\"", "", true, ""},
		"members that ask for the same get": {"\nspread: {key: rack}", "", "", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			members := []Member{{Claim: member("m0", "2")}, {Claim: member("m1", "2")}}
			for i, text := range []string{c.first, c.second} {
				members[i].Claim.Annotations[v1alpha1.PlacementAnnotation] += c.spread + text
			}
			served, err := Serve(t.Context(), policy, bundle.Quota{}, members, FleetOf(servers, nil, nil, time.Unix(0, 0)))
			if err != nil || served.Complete != c.complete {
				t.Fatalf("complete %v, %v", served.Complete, err)
			}
			if !c.complete && served.Answers[0].Lacking != c.short {
				t.Errorf("%q is told to lack a server, want %q", served.Answers[0].Lacking, c.short)
			}
		})
	}
}
