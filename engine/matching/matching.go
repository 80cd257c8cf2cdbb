// SPDX-License-Identifier: Apache-2.0

// Package matching gives each of several members a server of its own, where each may have some of them. It is pure, and exact: where
// there is a way to serve them all, it finds one. It looks for augmenting paths: a member for which no server is left has another
// one move to another of its servers, and so on, until one is free.
package matching

// Problem is which member may have which servers. Members and servers are counted from 0.
type Problem struct {
	// Ranked holds for each member the servers that it may have, the best first.
	Ranked [][]int
	// Servers is how many there are.
	Servers int
}

// None stands for the server of a member that has none.
const None = -1

// Solve returns the server of each member. Complete says that each has one. If not, as many members as possible have one, the first
// members before others. A member gets the best server that those before it leave, and moves only for a member without one.
func (p Problem) Solve() (servers []int, complete bool) {
	s := &search{ranked: make([][]int, len(p.Ranked)), server: filled(len(p.Ranked)), holder: filled(p.Servers), seen: make([]int, p.Servers)}
	for m, all := range p.Ranked {
		s.ranked[m] = all[:min(len(p.Ranked), len(all))] // a member needs no more of its servers than there are members
	}
	complete = true
	for m := range s.server {
		s.round++
		complete = s.augment(m) && complete
	}
	return s.server, complete
}

func filled(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = None
	}
	return all
}

// search is a problem that is being solved.
type search struct {
	ranked [][]int
	// server is by member, holder by server; seen holds the last round in which a server was looked at.
	server, holder, seen []int
	round                int
}

// augment gives a member the best of its servers that is free, or else one for which others move.
func (s *search) augment(member int) bool {
	for _, v := range s.ranked[member] {
		if s.holder[v] == None {
			s.server[member], s.holder[v] = v, member
			return true
		}
	}
	for _, v := range s.ranked[member] {
		if s.seen[v] == s.round {
			continue
		}
		s.seen[v] = s.round
		if s.augment(s.holder[v]) {
			s.server[member], s.holder[v] = v, member
			return true
		}
	}
	return false
}
