// SPDX-License-Identifier: Apache-2.0

package placement

import "github.com/metalaw/metalaw/engine/selection"

// Places are the counts of Spread before any claim is counted: 0 for each place where one of n servers stands that the
// placement accepts. It is given every server that the hard contract could ever let the claim have (selection.Feasible), in whatever
// state, so that a full rack is still a rack. It is nil where there is no Spread.
func (p *Placement) Places(n int, at func(i int) *selection.Candidate) map[string]int64 {
	spread := p.Spread()
	if spread == nil {
		return nil
	}
	counts := map[string]int64{}
	for i := range n {
		place := spread.Place(at(i))
		if _, known := counts[place]; !known && place != "" && p.Accepts(at(i)) {
			counts[place] = 0
		}
	}
	return counts
}
