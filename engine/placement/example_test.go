// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"

	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

// A claim of a gang keeps away from the rack in which another member is already.
func ExamplePlacement_Sort() {
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
	at := func(i int) *selection.Candidate { return fleet[i] }

	counts := p.Places(len(fleet), at) // from servers in any state
	counts["r1"]++                     // where the other member is

	sorted := p.Sort(len(fleet), at, counts) // from those that the hard contract lets the claim have
	for alternative, group := range sorted.Groups {
		for _, i := range group {
			fmt.Println("alternative", alternative, "server", fleet[i].Name, "score", sorted.Scores[i])
		}
	}
	for code, r := range sorted.Rejections {
		fmt.Println(code, r.Count, r.Message)
	}
	// Output:
	// alternative 1 server b score 0
	// alternative 1 server c score 10
	// spread 1 its rack has 1 of the claims that count and the emptiest (r2) has 0; with this one it would exceed maxSkew 1
}
