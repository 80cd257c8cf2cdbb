// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"

	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

// A claim of a gang keeps away from the rack in which another member is already.
func ExamplePlacement_Judge() {
	p, found := placement.Parse(placement.File, `
alternatives: [{where: server.gpus >= 8}, {}]
preferred: [{weight: 10, where: server.nicMaxSpeed >= 100000}]
spread: {key: rack}
gang: {name: db, size: 2}
`)
	if err := found.Err(); err != nil {
		fmt.Println(err)
		return
	}
	fleet := []*selection.Candidate{
		{Name: "a", Rack: "r1", GPUs: 8}, {Name: "b", Rack: "r2"}, {Name: "c", Rack: "r2", NICMaxSpeed: 100000},
	}
	counts := map[string]int64{"r1": 1, "r2": 0} // r1 is where the other member is
	for _, c := range fleet {
		j := p.Judge(c)
		if ok, why := p.Spread().Allows(p.Spread().Place(c), counts); !ok {
			fmt.Println("server", c.Name, why)
			continue
		}
		fmt.Println("server", c.Name, "alternative", j.Alternative, "score", j.Score)
	}
	// Output:
	// server a its rack has 1 of the claims that count and the emptiest (r2) has 0; with this one it would exceed maxSkew 1
	// server b alternative 1 score 0
	// server c alternative 1 score 10
}
