// SPDX-License-Identifier: Apache-2.0

package solve_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

// gang is the placement of a member, with more lines.
func gang(size int, more string) string {
	return fmt.Sprintf("gang: {name: db, size: %d}\n%s", size, more)
}

func TestAGangGetsServersTogetherOrNotAtAll(t *testing.T) {
	named := func(name string) string { return fmt.Sprintf("where: server.name == %q", name) }
	const apart = "spread: {key: rack}\n"
	for name, c := range map[string]struct {
		servers []server
		members []string
		// bound are the servers that they get; none where they wait, and then lacking is a member that finds none.
		bound   []string
		lacking string
	}{
		"two members and two servers":        {servers: []server{free("a"), free("b")}, members: []string{"", ""}, bound: []string{"a", "b"}},
		"three members and two servers":      {servers: []server{free("a"), free("b")}, members: []string{"", "", ""}},
		"the first makes way for the second": {servers: []server{free("a"), free("b")}, members: []string{"", named("a")}, bound: []string{"b", "a"}},
		"two that want one server":           {servers: []server{free("a"), free("b")}, members: []string{named("a"), named("a")}},
		"a member that finds none keeps the other waiting": {servers: []server{free("a"), free("b")}, members: []string{"", named("c")},
			lacking: "m1"},
		"spread members that ask for the same": {servers: []server{free("a", inRack("r1")), free("b", inRack("r1")), free("c", inRack("r2"))},
			members: []string{apart, apart}, bound: []string{"a", "c"}},
		"spread members for which there is one place": {servers: []server{free("a", inRack("r1")), free("b", inRack("r1")),
			free("c", inRack("r2"), func(s *server) { s.Unclaimable = true })}, members: []string{apart, apart}},
		"a spread member makes no way for another": {servers: []server{free("a", inRack("r1")), free("b", inRack("r2"))},
			members: []string{apart, apart + named("a")}, lacking: "m1"},
		"the spread member with one choice comes first": {servers: []server{free("a", inRack("r1")), free("b", inRack("r2"))},
			members: []string{apart + named("a"), apart}, bound: []string{"a", "b"}},
		"a member without spread makes no way for one with it": {servers: []server{free("a", inRack("r1")), free("b", inRack("r2"))},
			members: []string{"", apart + named("a")}, lacking: "m1"},
	} {
		t.Run(name, func(t *testing.T) {
			var members []*claims.Claim
			for i, text := range c.members {
				members = append(members, claim(t, fmt.Sprintf("m%d", i), gang(len(c.members), text)))
			}
			got := question{policy: compiled(t, allowAll), servers: c.servers}.serve(t, members...)
			if got.complete != (c.bound != nil) || !slices.Equal(got.bound, c.bound) {
				t.Errorf("complete %t with %q, want %q", got.complete, got.bound, c.bound)
			}
			if lacking := got.answers[0].Lacking; lacking != c.lacking {
				t.Errorf("%q is told to find none, want %q", lacking, c.lacking)
			}
		})
	}
}

func TestAGangThatWaitsIsToldWhy(t *testing.T) {
	const unknown = `gang "db": servers for 0 of its 3 members can be had now, 3 short; of some servers it is not known whether it may have them: ` +
		"the policy cannot be evaluated: selection.rego:3:10: rule allow; "
	refusing := "package metalaw.selection\n\nallow if to_number(input.candidate.labels.size) > 0\n"
	for name, c := range map[string]struct {
		policy  string
		more    string
		steps   int64
		reason  string
		says    string
		limited bool
	}{
		"how many are short":                 {policy: allowAll, says: `gang "db": servers for 2 of its 3 members can be had now, 1 short; `},
		"how many are short of spread ones":  {policy: allowAll, more: "spread: {key: rack}", says: `gang "db": servers for 2 of its 3 members can be had now, 1 short; `},
		"the search ended at its step limit": {policy: allowAll, steps: 1, reason: solve.ReasonGangWaiting, limited: true},
		"the policy fails":                   {policy: refusing, says: unknown},
		"the policy fails for spread ones":   {policy: refusing, more: "spread: {key: rack}", says: unknown},
	} {
		t.Run(name, func(t *testing.T) {
			servers := []server{free("a", inRack("r1")), free("b", inRack("r2"))}
			var members []*claims.Claim
			for i := range 3 {
				members = append(members, claim(t, fmt.Sprintf("m%d", i), gang(3, c.more)))
			}
			q := question{policy: compiled(t, c.policy), servers: servers}
			for i, r := range solve.Solve(t.Context(), q.snapshot(), members, solve.Want{Steps: c.steps}) {
				if r.Action != solve.Refuse || r.Refusal.Reason != c.reason || r.Refusal.Gang != c.says || r.Refusal.Limited != c.limited {
					t.Errorf("member %d: %v %+v", i, r.Action, r.Refusal)
				}
			}
		})
	}
}

// However many of the others have to make way for members that want one server each.
func TestAGangIsServedThoughManyOfItsMembersWantOneServerEach(t *testing.T) {
	var servers []server
	var members []*claims.Claim
	for i := range 10 {
		servers = append(servers, free(fmt.Sprintf("s%02d", i)), free(fmt.Sprintf("t%02d", i)))
		members = append(members, claim(t, fmt.Sprintf("any-%d", i), gang(20, "")))
	}
	for i := range 10 {
		members = append(members, claim(t, fmt.Sprintf("picky-%d", i), gang(20, fmt.Sprintf("where: server.name == \"s%02d\"", i))))
	}
	if got := (question{policy: compiled(t, allowAll), servers: servers}).serve(t, members...); !got.complete || len(got.bound) != 20 {
		t.Errorf("complete %t, %d have servers", got.complete, len(got.bound))
	}
}

// drawMembers are claims of one gang that ask for different racks, sizes and names, or all for the same. alone are the same without
// gang and spread.
func drawMembers(t *testing.T, r *rapid.T, spreads []string) (members, alone []*claims.Claim, alike bool) {
	n := rapid.IntRange(2, 4).Draw(r, "members")
	alike = rapid.Bool().Draw(r, "alike")
	spread, where := "", ""
	for i := range n {
		if i == 0 || !alike {
			spread = rapid.SampledFrom(spreads).Draw(r, "spread")
			where = rapid.SampledFrom([]string{"", `where: server.rack == "r1"`, `where: server.rack != "r1"`,
				`where: server.rack == "r4" || server.name == "s05"`, `where: server.labels["size"] == "m"`}).Draw(r, "where")
		}
		name := fmt.Sprint("m", i)
		members, alone = append(members, claim(t, name, gang(n, spread+where))), append(alone, claim(t, name, where))
	}
	return members, alone, alike
}

// waysFor tries every order of the members and every server for each. A member that is spread counts those before it.
func waysFor(could [][]string, racks map[string]string, counts []map[string]int64, spreads []*placement.Spread, left []int, taken []string) bool {
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
			if waysFor(could, racks, next, spreads, rest, append(slices.Clone(taken), name)) {
				return true
			}
		}
	}
	return false
}

func TestAGangIsServedWhereBruteForceFindsAWay(t *testing.T) {
	policy := compiled(t, rules)
	for name, c := range map[string]struct {
		spreads []string
		// exact says that a gang never waits where there is a way; else only one whose members ask for the same never does.
		exact bool
	}{
		"without spread":         {[]string{""}, true},
		"all spread alike":       {[]string{"spread: {key: rack}\n"}, false},
		"spread in several ways": {[]string{"", "spread: {key: rack}\n", "spread: {key: rack, maxSkew: 2}\n"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			runs, whole, short := 0, 0, 0
			rapid.Check(t, func(r *rapid.T) {
				runs++
				servers := drawServers(r)
				members, alone, alike := drawMembers(t, r, c.spreads)
				racks := map[string]string{}
				var feasible []selection.Candidate
				for _, s := range servers {
					racks[s.Name] = s.rack
					if ok, _, _ := selection.Feasible(selection.ClaimSpec{}, s.ServerState); ok {
						feasible = append(feasible, s.Candidate())
					}
				}
				var could [][]string
				var left []int
				var counts []map[string]int64
				var spreads []*placement.Spread
				for i, m := range members {
					ranked, _ := bruteForce(t, policy, alone[i], servers, nil)
					var names []string
					for _, one := range ranked {
						names = append(names, one.Name)
					}
					could, left, spreads = append(could, names), append(left, i), append(spreads, m.Placement.Spread())
					counts = append(counts, placesOf(m.Placement, feasible))
				}
				want := waysFor(could, racks, counts, spreads, left, nil)
				got := question{policy: policy, servers: servers}.serve(t, members...)
				if got.complete && !want || (c.exact || alike) && got.complete != want {
					r.Errorf("complete is %t, and by brute force it is %t: %q", got.complete, want, could)
				}
				if want {
					whole++
				} else {
					short++
				}
				checkTaken(r, got, could)
			})
			if least := runs / 50; whole < least || short < least {
				t.Errorf("of %d gangs %d can be served and %d not: too few of interest", runs, whole, short)
			}
		})
	}
}

// checkTaken sees that each member takes a server that it could have, and none that another has.
func checkTaken(r *rapid.T, got served, could [][]string) {
	var taken []string
	for i, a := range got.answers {
		one, ok := a.Taken()
		if ok && (!slices.Contains(could[i], one.Name) || got.complete && slices.Contains(taken, one.Name)) {
			r.Errorf("member %d takes %s; it could have %q, and %q are taken", i, one.Name, could[i], taken)
		}
		taken = append(taken, one.Name)
	}
}
