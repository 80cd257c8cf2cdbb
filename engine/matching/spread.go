// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"slices"
	"sort"
)

// SolveSpread is Solve for members of which each place may have at most maxSkew more than the emptiest, at any moment while one after
// the other is placed, and who all count for each other. counts holds how many each place has before. It is exact as well: members
// that are placed level by level, the emptiest places first, come to every distribution in which no place that got one has more than
// maxSkew above what the emptiest has in the end. Order puts members that have a server into an order in which each may be placed.
//
// Each place then has at least what the emptiest has in the end, the floor, and at most maxSkew more. The higher the floor, the more
// it takes to reach it, and the more members can be served where that can be done. So the lowest floor is looked for on which all are
// served, or else the highest that can be reached.
func (p Problem) SolveSpread(counts []int64, maxSkew int64) (servers []int, complete bool) {
	n := int64(len(p.Ranked))
	if len(counts) == 0 {
		return filled(len(p.Ranked)), n == 0
	}
	emptiest := slices.Min(counts)
	on := func(above int) *search {
		p.Least, p.Most = bounds(counts, emptiest+int64(above), maxSkew, n)
		return p.search()
	}
	highest := sort.Search(len(p.Ranked), func(i int) bool { return !on(i + 1).canReach() })
	lowest := sort.Search(highest, func(i int) bool { return on(i).canServe() })
	s := on(lowest)
	complete = s.solve()
	return s.server, complete
}

// canReach says whether each place can have as many members as it has to.
func (s *search) canReach() bool {
	return sum(s.Least) <= len(s.Ranked) && s.reach()
}

// canServe says whether each member can have a server as well.
func (s *search) canServe() bool {
	return sum(s.Most) >= len(s.Ranked) && s.solve()
}

func sum(all []int) (n int) {
	for _, one := range all {
		n += one
	}
	return n
}

// bounds are how many of n members each place has to get and may get, for a floor.
func bounds(counts []int64, floor, maxSkew, n int64) (least, most []int) {
	least, most = make([]int, len(counts)), make([]int, len(counts))
	for i, c := range counts {
		lower := min(n+1, max(0, floor-c)) // more than all members cannot be had
		least[i] = int(lower)
		most[i] = int(max(lower, min(n, floor+maxSkew-c)))
	}
	return least, most
}

// Order returns the members that have a server, those of the emptiest places first, and of each place one on each level.
func (p Problem) Order(servers []int, counts []int64) []int {
	next := slices.Clone(counts)
	level := make([]int64, len(servers))
	var order []int
	for m, v := range servers {
		if v == None {
			continue
		}
		order = append(order, m)
		if p.Place != nil {
			next[p.Place[v]]++
			level[m] = next[p.Place[v]]
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(level[a] - level[b]) })
	return order
}
