// SPDX-License-Identifier: Apache-2.0

// Package matching gives each of several members a server of its own, where each may have some of them. It is pure, and exact: where
// there is a way to serve them all, it finds one. It looks for augmenting paths: a member for which no server is left has another
// one move to another of its servers, and so on, until one is free.
package matching

// Problem is who may have what. Members, servers and places are counted from 0.
type Problem struct {
	// Ranked holds for each member the servers that it may have, the best first.
	Ranked [][]int
	// Servers is how many there are.
	Servers int
	// Place holds the place of each server; nil where places do not matter.
	Place []int
	// Least and Most bound how many members each place gets.
	Least, Most []int
}

// None stands for the server of a member that has none.
const None = -1

// Solve returns the server of each member. Complete says that each has one, and each place as many members as it has to. Where that
// cannot be, as many members as possible have one, and of several ways one in which the first members do. A member gets the best
// of its servers that those before it leave, and moves only where another one would have none.
func (p Problem) Solve() (servers []int, complete bool) {
	s := p.search()
	complete = s.solve()
	return s.server, complete
}

// placeless puts all servers into one place. A member needs no more of its servers than there are members.
func (p Problem) placeless() Problem {
	n := len(p.Ranked)
	out := Problem{Ranked: make([][]int, n), Servers: p.Servers, Place: make([]int, p.Servers), Least: []int{0}, Most: []int{n}}
	for i, all := range p.Ranked {
		out.Ranked[i] = all[:min(n, len(all))]
	}
	return out
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
	Problem
	// server is by member, holder by server; used counts the members of each place, and bound is how many it may have.
	server, holder, used, bound []int
	// at are the servers of each place.
	at [][]int
	// seen and seenPlace hold the last round in which they were looked at.
	seen, seenPlace []int
	round           int
}

// search begins to solve a problem.
func (p Problem) search() *search {
	if p.Place == nil {
		p = p.placeless()
	}
	s := &search{Problem: p, server: filled(len(p.Ranked)), holder: filled(p.Servers), used: make([]int, len(p.Most)),
		seen: make([]int, p.Servers), seenPlace: make([]int, len(p.Most)), at: make([][]int, len(p.Most))}
	for v, place := range p.Place {
		s.at[place] = append(s.at[place], v)
	}
	return s
}

// solve says whether each member has a server, and each place as many members as it has to.
func (s *search) solve() (complete bool) {
	reached := s.reach()
	return s.serve(s.Most) && reached
}

// reach says whether each place has as many members as it has to. What it has it keeps: a path that ends in one place takes nothing
// from another.
func (s *search) reach() bool {
	s.serve(s.Least)
	for place, least := range s.Least {
		if s.used[place] < least {
			return false
		}
	}
	return true
}

// serve gives servers to those members that have none. It says whether all have one then.
func (s *search) serve(bound []int) bool {
	s.bound = bound
	all := true
	for m, has := range s.server {
		if has == None {
			s.round++
			all = s.augment(m) && all
		}
	}
	return all
}

// augment gives a member the best of its servers that is free, or else one for which others move.
func (s *search) augment(member int) bool {
	for _, v := range s.Ranked[member] {
		if place := s.Place[v]; s.seen[v] != s.round && s.holder[v] == None && s.used[place] < s.bound[place] {
			s.used[place]++
			s.server[member], s.holder[v] = v, member
			return true
		}
	}
	for _, v := range s.Ranked[member] {
		if s.seen[v] == s.round {
			continue
		}
		s.seen[v] = s.round
		if s.clear(v) {
			s.server[member], s.holder[v] = v, member
			return true
		}
	}
	return false
}

// clear has a server be free, and room for it in its place.
func (s *search) clear(v int) bool {
	if holder := s.holder[v]; holder != None {
		return s.augment(holder)
	}
	place := s.Place[v]
	if s.seenPlace[place] == s.round {
		return false
	}
	s.seenPlace[place] = s.round
	for _, other := range s.at[place] {
		holder := s.holder[other]
		if holder == None || s.seen[other] == s.round {
			continue
		}
		s.seen[other] = s.round
		if s.augment(holder) {
			s.holder[other] = None
			return true
		}
	}
	return false
}
