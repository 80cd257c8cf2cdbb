// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

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
