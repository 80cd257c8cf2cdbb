// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"maps"

	"github.com/metalaw/metalaw/engine/selection"
)

// Places are the counts of Spread before any claim is counted: 0 for each place where one of n servers stands that the
// placement accepts and the policy does not turn away for good. It is given every server that the hard contract could ever let
// the claim have (selection.Feasible), in whatever state, so that a full rack is still a rack. could is as for CountedPlaces. It
// is nil where there is no Spread.
func (p *Placement) Places(n int, at func(i int) *selection.Candidate, could func(some []int) []int) map[string]int64 {
	spread := p.Spread()
	if spread == nil {
		return nil
	}
	return CountedPlaces(n, func(i int) string { return spread.Place(at(i)) }, func(i int) bool {
		j, _ := p.judge(at(i))
		return j.Accepted
	}, could)
}

// CountedPlaces is Places for who has judged the servers already: place is where one of n stands, empty where nobody said, and
// accepts says whether the placement accepts it. could returns those of some that the policy might ever allow, in any order; nil
// where it may allow all. It is asked about as few as will do, since one server makes a place: about one of each place at
// first, and about ever more of those places that are not settled.
func CountedPlaces(n int, place func(i int) string, accepts func(i int) bool, could func(some []int) []int) map[string]int64 {
	counts := map[string]int64{}
	if could == nil {
		for i := range n {
			at := place(i)
			if _, known := counts[at]; !known && at != "" && accepts(i) {
				counts[at] = 0
			}
		}
		return counts
	}
	left := map[string][]int{}
	for i := range n {
		if at := place(i); at != "" {
			left[at] = append(left[at], i)
		}
	}
	for size := 1; len(left) > 0; size *= 4 {
		var some []int
		for at, rest := range left {
			some, left[at] = takeAccepted(some, rest, size, accepts)
		}
		for _, i := range could(some) {
			counts[place(i)] = 0
		}
		maps.DeleteFunc(left, func(at string, rest []int) bool {
			_, known := counts[at]
			return known || len(rest) == 0
		})
	}
	return counts
}

// takeAccepted adds to some the first of rest that are accepted, so many at most, and returns what is left behind them.
func takeAccepted(some, rest []int, most int, accepts func(i int) bool) (more, left []int) {
	for ; most > 0 && len(rest) > 0; rest = rest[1:] {
		if accepts(rest[0]) {
			some = append(some, rest[0])
			most--
		}
	}
	return some, rest
}
