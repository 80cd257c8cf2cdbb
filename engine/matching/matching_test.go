// SPDX-License-Identifier: Apache-2.0

package matching

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSolve(t *testing.T) {
	for name, c := range map[string]struct {
		p        Problem
		want     []int
		complete bool
	}{
		"each gets its best":                        {Problem{Ranked: [][]int{{1, 0}, {0, 1}}, Servers: 2}, []int{1, 0}, true},
		"the first moves for one that has no other": {Problem{Ranked: [][]int{{0, 1}, {0}}, Servers: 2}, []int{1, 0}, true},
		"a chain of three moves":                    {Problem{Ranked: [][]int{{0, 1}, {1, 2}, {2, 3}, {0}, {1}}, Servers: 4}, []int{1, 2, 3, 0, None}, false},
		"the first members are served":              {Problem{Ranked: [][]int{{0}, {0}, {1}}, Servers: 2}, []int{0, None, 1}, false},
		"nobody needs anything":                     {Problem{Ranked: [][]int{}, Servers: 2}, []int{}, true},
		"a place takes no more than it may": {Problem{Ranked: [][]int{{0, 1, 2}, {0, 1, 2}}, Servers: 3, Place: []int{0, 0, 1}, Least: []int{0, 0}, Most: []int{1, 1}},
			[]int{0, 2}, true},
		"one in a full place moves": {Problem{Ranked: [][]int{{0, 2}, {1}}, Servers: 3, Place: []int{0, 0, 1}, Least: []int{0, 0}, Most: []int{1, 1}},
			[]int{2, 1}, true},
		"a place gets what it has to": {Problem{Ranked: [][]int{{0, 1, 2}, {0, 1}}, Servers: 3, Place: []int{0, 0, 1}, Least: []int{0, 1}, Most: []int{2, 2}},
			[]int{2, 0}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, complete := c.p.Solve()
			if diff := cmp.Diff(c.want, got); diff != "" || complete != c.complete {
				t.Errorf("complete %t, want %t; %s", complete, c.complete, diff)
			}
		})
	}
}

// drawn is a problem in which each member may have some of the servers.
func drawn(t *rapid.T) Problem {
	p := Problem{Ranked: make([][]int, rapid.IntRange(0, 5).Draw(t, "members")), Servers: rapid.IntRange(0, 6).Draw(t, "servers")}
	for m := range p.Ranked {
		for v := range p.Servers {
			if rapid.Bool().Draw(t, "may") {
				p.Ranked[m] = append(p.Ranked[m], v)
			}
		}
	}
	return p
}

// most tries every way: how many members can have a server at most.
func most(p Problem, member int, taken []bool) int {
	if member == len(p.Ranked) {
		return 0
	}
	best := most(p, member+1, taken)
	for _, v := range p.Ranked[member] {
		if !taken[v] {
			taken[v] = true
			best = max(best, 1+most(p, member+1, taken))
			taken[v] = false
		}
	}
	return best
}

// valid says that each server is one that its member may have, and of one member alone. It returns how many have one.
func valid(t *rapid.T, p Problem, servers []int) (have int) {
	taken := map[int]bool{}
	for m, v := range servers {
		if v == None {
			continue
		}
		if taken[v] || !slices.Contains(p.Ranked[m], v) {
			t.Fatalf("%+v: %v", p, servers)
		}
		taken[v] = true
		have++
	}
	return have
}

func TestAsManyAreServedAsCanBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		servers, complete := p.Solve()
		want := most(p, 0, make([]bool, p.Servers))
		if have := valid(t, p, servers); have != want || complete != (have == len(p.Ranked)) {
			t.Fatalf("%+v: %d have a server, complete %t, and %d could", p, have, complete, want)
		}
	})
}

// canSpread tries every order and every server.
func canSpread(p Problem, counts []int64, maxSkew int64, left []int, taken []bool) bool {
	if len(left) == 0 {
		return true
	}
	emptiest := slices.Min(counts)
	for i, m := range left {
		rest := slices.Delete(slices.Clone(left), i, i+1)
		for _, v := range p.Ranked[m] {
			at := p.Place[v]
			if taken[v] || counts[at]+1-emptiest > maxSkew {
				continue
			}
			taken[v] = true
			counts[at]++
			can := canSpread(p, counts, maxSkew, rest, taken)
			counts[at]--
			taken[v] = false
			if can {
				return true
			}
		}
	}
	return false
}

func TestSpreadMembersAreServedWheneverSomeOrderServesThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		counts := rapid.SliceOfN(rapid.Int64Range(0, 3), 1, 3).Draw(t, "counts")
		p.Place = make([]int, p.Servers)
		for v := range p.Place {
			p.Place[v] = rapid.IntRange(0, len(counts)-1).Draw(t, "place")
		}
		maxSkew := rapid.Int64Range(1, 2).Draw(t, "maxSkew")
		left := make([]int, len(p.Ranked))
		for m := range left {
			left[m] = m
		}
		servers, complete := p.SolveSpread(counts, maxSkew)
		valid(t, p, servers)
		if want := canSpread(p, counts, maxSkew, left, make([]bool, p.Servers)); complete != want {
			t.Fatalf("%+v in %v: complete %t, want %t", p, counts, complete, want)
		}
		now := slices.Clone(counts)
		for _, m := range p.Order(servers, counts) {
			at := p.Place[servers[m]]
			if now[at]+1-slices.Min(now) > maxSkew {
				t.Fatalf("%+v in %v: %v cannot be placed in this order", p, counts, servers)
			}
			now[at]++
		}
	})
}

func BenchmarkSolve(b *testing.B) {
	const n = 256
	p := Problem{Ranked: make([][]int, n), Servers: n}
	for m := range n { // the first halves want what only the second can have
		for v := range n {
			if m < n/2 || v < n/2 {
				p.Ranked[m] = append(p.Ranked[m], v)
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, complete := p.Solve(); !complete {
			b.Fatal("not complete")
		}
	}
}
