// SPDX-License-Identifier: Apache-2.0

package matching

import "slices"

// SolveSpread is Solve for members of which each place may have at most maxSkew more than the emptiest, at any moment while one after
// the other is placed, and who all count for each other. counts holds how many each place has before. It is exact as well: members
// that are placed level by level, the emptiest places first, come to every distribution in which no place that got one has more than
// maxSkew above what the emptiest has in the end. So it tries how many that may be. Order puts members that have a server into an
// order in which each may be placed.
func (p Problem) SolveSpread(counts []int64, maxSkew int64) (servers []int, complete bool) {
	n := int64(len(p.Ranked))
	if len(counts) == 0 {
		return filled(len(p.Ranked)), n == 0
	}
	emptiest := slices.Min(counts)
	for floor := emptiest; floor <= emptiest+n; floor++ {
		least, most := int64(0), int64(0)
		p.Least, p.Most = make([]int, len(counts)), make([]int, len(counts))
		for i, c := range counts {
			lower, upper := max(0, floor-c), min(n, max(0, floor+maxSkew-c))
			p.Least[i], p.Most[i] = int(lower), int(max(lower, upper))
			least, most = least+lower, most+int64(p.Most[i])
		}
		if least > n {
			break
		}
		if most < n {
			continue
		}
		if servers, complete = p.Solve(); complete {
			return servers, true
		}
	}
	p.Least, p.Most = make([]int, len(counts)), make([]int, len(counts))
	for i, c := range counts {
		p.Most[i] = int(min(n, max(0, emptiest+maxSkew-c)))
	}
	servers, _ = p.Solve()
	return servers, false
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
