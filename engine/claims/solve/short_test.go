// SPDX-License-Identifier: Apache-2.0

package solve_test

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/metalaw/metalaw/engine/claims"
)

// halfOfEachZone is a policy that keeps half of each zone's servers free.
const halfOfEachZone = `package metalaw.selection

allow := true
reject contains {"code": "zone-reserved", "message": "half of each zone is kept free"} if {
	free := input.fleet.freeByZone[input.candidate.zone]
	(free - 1) * 2 < input.fleet.totalByZone[input.candidate.zone]
}
`

// What one member would take is free. The others are told what turns the other servers away.
func TestAMemberOfAGangThatIsShortIsToldWhatKeepsServersFromIt(t *testing.T) {
	type told struct {
		Counts           map[string]int
		Nearest, Lacking string
	}
	const zoned = "s1 zone-reserved: half of each zone is kept free"
	const cordoned = "t0 unclaimable: it is cordoned (spec.unclaimable)"
	both := func(one told) [2]told { return [2]told{one, one} }
	for name, c := range map[string]struct {
		zone   string
		places [2]string
		want   [2]told
	}{
		"the policy, once one has a server": {"z1", [2]string{`where: server.zone == "z1"`, `where: server.zone == "z1"`},
			both(told{map[string]int{"zone-reserved": 2, "gang": 1, "unclaimable": 1}, zoned, ""})},
		"a cordon": {"", [2]string{`where: server.name in ["s0", "t0"]`, `where: server.name in ["s0", "t0"]`},
			both(told{map[string]int{"placement": 2, "gang": 1, "unclaimable": 1}, cordoned, ""})},
		"a member that asks for something else and comes first": {"", [2]string{`where: server.name == "s0"`, `where: server.name in ["s0", "t0"]`}, [2]told{
			{map[string]int{"placement": 2, "gang": 1, "unclaimable": 1}, "s0 gang: it would do, and not every member of its gang finds a server", "db-1"},
			{map[string]int{"placement": 2, "gang": 1, "unclaimable": 1}, cordoned, ""}}},
		"another member, where nothing else could be had": {"", [2]string{`where: server.name == "s0"`, `where: server.name == "s0"`},
			both(told{map[string]int{"placement": 2, "gang": 1, "unclaimable": 1}, "s0 gang: another member of its gang would get it", ""})},
		"a member that asks for something else and finds nothing": {"", [2]string{"", `where: server.name == "t0"`}, [2]told{
			{map[string]int{"gang": 3, "unclaimable": 1}, "s0 gang: it would do, and not every member of its gang finds a server", "db-1"},
			{map[string]int{"placement": 3, "unclaimable": 1}, cordoned, ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			servers := []server{free("t0", func(s *server) { s.Unclaimable = true })}
			for i := range 3 {
				servers = append(servers, free(fmt.Sprintf("s%d", i), func(s *server) { s.zone = c.zone }))
			}
			var members []*claims.Claim
			for i, text := range c.places {
				members = append(members, claim(t, fmt.Sprintf("db-%d", i), gang(2, text)))
			}
			got := question{policy: compiled(t, halfOfEachZone), servers: servers}.serve(t, members...)
			if got.complete || got.bound != nil {
				t.Fatalf("%+v", got)
			}
			for i, a := range got.answers {
				first := a.Verdicts[0]
				got := told{a.Counts, first.Name + " " + first.Reasons[0].Code + ": " + first.Reasons[0].Message, a.Lacking}
				if diff := gocmp.Diff(c.want[i], got); diff != "" || a.Fits != 0 || !a.Short {
					t.Errorf("member %d, of which %d fit:\n%s", i, a.Fits, diff)
				}
				if _, ok := a.Taken(); ok {
					t.Errorf("member %d takes %s", i, first.Name)
				}
			}
		})
	}
}
