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
		"no member needs anything":                  {Problem{Ranked: [][]int{}, Servers: 2}, []int{}, true},
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
