// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"testing"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/selection"
)

// halfOfEachZone is a policy that keeps half of each zone's servers free.
const halfOfEachZone = `package metalaw.selection

allow := true
reject contains {"code": "zone-reserved", "message": "half of each zone is kept free"} if {
	free := input.fleet.freeByZone[input.candidate.zone]
	(free - 1) * 2 < input.fleet.totalByZone[input.candidate.zone]
}
`

// What a gang waits for is what keeps servers from the members that are left without one, and not what the others would take.
func TestTheMembersOfAGangThatIsShortAreToldWhatKeepsServersFromIt(t *testing.T) {
	const short = `gang "db": servers for 1 of its 2 members can be had now, 1 short; `
	for name, c := range map[string]struct {
		zone   string
		places [2]string
		want   [2]string
	}{
		"the policy, once one has a server": {"z1", [2]string{"", ""}, [2]string{
			"4 of 4 servers match: zone-reserved 2, gang 1, unclaimable 1", "4 of 4 servers match: zone-reserved 2, gang 1, unclaimable 1"}},
		"a cordon": {"", [2]string{`where: server.name in ["s0", "cordoned"]`, `where: server.name in ["s0", "cordoned"]`}, [2]string{
			"4 of 4 servers match: placement 2, gang 1, unclaimable 1", "4 of 4 servers match: placement 2, gang 1, unclaimable 1"}},
		"a member that asks for something else and comes first": {"", [2]string{`where: server.name == "s0"`, `where: server.name in ["s0", "cordoned"]`}, [2]string{
			"4 of 4 servers match: placement 2, gang 1, unclaimable 1", "4 of 4 servers match: placement 2, gang 1, unclaimable 1"}},
		"a member that asks for something else and finds nothing": {"", [2]string{"", `where: server.name == "cordoned"`}, [2]string{
			"4 of 4 servers match: gang 3, unclaimable 1", "4 of 4 servers match: placement 3, unclaimable 1"}},
		"its own alternatives": {"", [2]string{`alternatives: [{where: server.name == "s0"}, {where: server.name == "cordoned"}]`,
			`alternatives: [{where: server.name == "s0"}, {where: server.name == "cordoned"}]`}, [2]string{
			"4 of 4 servers match: placement 2, gang 1, unclaimable 1", "4 of 4 servers match: placement 2, gang 1, unclaimable 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			policy, found := selection.Compile(map[string][]byte{"selection.rego": []byte(halfOfEachZone)})
			if policy == nil {
				t.Fatal(found)
			}
			w.policy = policy
			for i := range 3 {
				w.addServer(aServer(fmt.Sprintf("s%d", i), labelled(v1alpha1.ZoneLabel, c.zone)))
			}
			w.addServer(aServer("cordoned", func(s *v1alpha1.Server) { s.Spec.Unclaimable = true }))
			for i, text := range c.places {
				w.addClaim(aClaim(fmt.Sprintf("db-%d", i), placed("gang: {name: db, size: 2}\n"+text)))
			}
			w.deliver(9)
			w.must(w.pass())
			for i, one := range w.claims() {
				if v, _ := w.s.Verdict(one.UID); v.Reason != v1alpha1.ReasonGangWaiting || v.Message != short+c.want[i] {
					t.Errorf("%s is told %s %q", one.Name, v.Reason, v.Message)
				}
			}
		})
	}
}
