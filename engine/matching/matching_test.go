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

// mostSpread tries every order and every server: how many of those left can be placed at most.
func mostSpread(p Problem, counts []int64, maxSkew int64, left []int, taken []bool) (most int) {
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
			most = max(most, 1+mostSpread(p, counts, maxSkew, rest, taken))
			counts[at]--
			taken[v] = false
			if most == len(left) {
				return most
			}
		}
	}
	return most
}

func TestAsManySpreadMembersAreServedAsSomeOrderServes(t *testing.T) {
	runs, short, some := 0, 0, 0
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
		have, want := valid(t, p, servers), mostSpread(p, counts, maxSkew, left, make([]bool, p.Servers))
		if have != want || complete != (want == len(left)) {
			t.Fatalf("%+v in %v: %v, complete %t, and %d can be served", p, counts, servers, complete, want)
		}
		now := slices.Clone(counts)
		for _, m := range p.Order(servers, counts) {
			at := p.Place[servers[m]]
			if now[at]+1-slices.Min(now) > maxSkew {
				t.Fatalf("%+v in %v: %v cannot be placed in this order", p, counts, servers)
			}
			now[at]++
		}
		runs++
		if !complete {
			short++
			if slices.Min(now) > slices.Min(counts) {
				some++
			}
		}
	})
	if short < runs/20 || some < runs/100 {
		t.Errorf("of %d problems %d cannot be solved, %d of them above the first level: too few of interest", runs, short, some)
	}
}

// Three members can only stand in the first place and one in the second: that one makes room for a second of the others.
func TestWhereNotAllCanBeSpreadAsManyAreAsCanBe(t *testing.T) {
	p := Problem{Ranked: [][]int{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}, {3}}, Servers: 4, Place: []int{0, 0, 0, 1}}
	servers, complete := p.SolveSpread([]int64{0, 0}, 1)
	if diff := cmp.Diff([]int{0, 1, None, 3}, servers); diff != "" || complete {
		t.Error(diff, complete)
	}
	if diff := cmp.Diff([]int{0, 3, 1}, p.Order(servers, []int64{0, 0})); diff != "" {
		t.Error(diff)
	}
}

// A gang that is short is looked at in every pass.
func BenchmarkSolveSpread(b *testing.B) {
	const n = 256
	p := Problem{Ranked: make([][]int, n), Servers: n - 1, Place: make([]int, n-1)}
	for v := range p.Place {
		p.Place[v] = v % 8
	}
	for m := range n {
		for v := range n - 1 {
			p.Ranked[m] = append(p.Ranked[m], v)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, complete := p.SolveSpread(make([]int64, 8), 1); complete {
			b.Fatal("complete")
		}
	}
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
