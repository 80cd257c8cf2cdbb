// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"math"
	"slices"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/internal/bdd"
)

const (
	// maxCombinations bounds how many combinations of values of facts that are compared with each other are tried.
	maxCombinations = 50_000
	// maxComparisons is how many comparisons a signature can hold.
	maxComparisons = 63
)

// group is facts of ordered kinds that are compared with each other, directly or over a third, with all comparisons that
// are made of them. Which of those can hold together is found by trying values.
type group struct {
	facts       []int
	comparisons []*primitive
	// signatures are the combinations of answers that values exist for, in the order in which they were found; bit i says
	// that comparison i is not answered as by the quiet facts. examples are values for each, by position in facts.
	signatures []uint64
	examples   map[uint64][]int64
	// complete says that no other combination is possible.
	complete bool
}

// groupsOf joins the facts that are compared.
func groupsOf(words *engine.Vocabulary, primitives []*primitive) []*group {
	leader := make([]int, len(words.Facts))
	for i := range leader {
		leader[i] = i
	}
	find := func(i int) int {
		for leader[i] != i {
			i = leader[i]
		}
		return i
	}
	for _, p := range primitives {
		if p.kind == isCompared && p.right.fact >= 0 {
			a, b := find(p.left.fact), find(p.right.fact)
			leader[max(a, b)] = min(a, b)
		}
	}
	byLeader := map[int]*group{}
	var all []*group
	for _, p := range primitives {
		if p.kind != isCompared {
			continue
		}
		at := find(p.left.fact)
		g, ok := byLeader[at]
		if !ok {
			g = &group{}
			byLeader[at] = g
			all = append(all, g)
		}
		g.comparisons = append(g.comparisons, p)
		for _, o := range []operand{p.left, p.right} {
			if o.fact >= 0 && !slices.Contains(g.facts, o.fact) {
				g.facts = append(g.facts, o.fact)
			}
		}
	}
	return all
}

// explore finds out which comparisons can hold together. In every gap between two literals each fact gets as many values
// as there are facts, so that every order of them occurs that can.
func (g *group) explore(words *engine.Vocabulary, base engine.Values) {
	candidates := make([][]int64, len(g.facts))
	combinations := 1
	for i, f := range g.facts {
		candidates[i] = g.candidates(words.Facts[f].Kind, base, f)
		combinations *= len(candidates[i])
		if combinations > maxCombinations {
			break
		}
	}
	g.examples = map[uint64][]int64{}
	if combinations > maxCombinations || len(g.comparisons) > maxComparisons {
		return
	}
	g.complete = true
	decided := g.decided()
	values := make([]int64, len(g.facts))
	costs := map[uint64]int{}
	var walk func(k, cost int, s uint64)
	walk = func(k, cost int, s uint64) {
		if k == len(g.facts) {
			if known, ok := costs[s]; !ok || cost < known {
				if !ok {
					g.signatures = append(g.signatures, s)
				}
				costs[s], g.examples[s] = cost, slices.Clone(values)
			}
			return
		}
		for i, n := range candidates[k] {
			values[k] = n
			now := s
			for _, c := range decided[k] {
				now |= c.bit(values)
			}
			walk(k+1, cost+min(i, 1), now)
		}
	}
	walk(0, 0, 0)
}

// placed is a comparison with its number in its group and where in the group's facts its operands are; a literal is nowhere.
type placed struct {
	*primitive
	number, leftAt, rightAt int
}

// bit is the comparison's place in a signature where its answer is not that of the quiet facts, and 0 elsewhere.
func (c placed) bit(values []int64) uint64 {
	left, right := c.left.literal, c.right.literal
	if c.leftAt >= 0 {
		left = values[c.leftAt]
	}
	if c.rightAt >= 0 {
		right = values[c.rightAt]
	}
	if c.op.holds(left, right) == c.flipped {
		return 0
	}
	return 1 << c.number
}

// decided lists, for each fact, the comparisons of which it is the last.
func (g *group) decided() [][]placed {
	all := make([][]placed, len(g.facts))
	for i, p := range g.comparisons {
		c := placed{p, i, slices.Index(g.facts, p.left.fact), slices.Index(g.facts, p.right.fact)}
		last := max(c.leftAt, c.rightAt)
		all[last] = append(all[last], c)
	}
	return all
}

// candidates are values of one fact, its quiet value first and then those nearest to what it is compared with. An age is
// never negative and a duration always above zero.
func (g *group) candidates(kind engine.Kind, base engine.Values, fact int) []int64 {
	all := []int64{numberOf(base[fact])}
	marks := []int64{}
	for _, p := range g.comparisons {
		if p.right.fact < 0 {
			marks = append(marks, p.right.literal)
		}
	}
	for _, f := range g.facts {
		marks = append(marks, numberOf(base[f]))
	}
	slices.Sort(marks)
	marks = slices.Compact(marks)
	for d := range int64(len(g.facts) + 1) {
		for _, m := range marks {
			if m <= math.MaxInt64-d {
				all = append(all, m+d)
			}
			if m >= math.MinInt64+d {
				all = append(all, m-d)
			}
		}
	}
	seen := map[int64]bool{}
	return slices.DeleteFunc(all, func(n int64) bool {
		drop := seen[n] || (kind == engine.Age && n < 0) || (kind == engine.Duration && n <= 0)
		seen[n] = true
		return drop
	})
}

// possible is the function that holds for the signatures of the values that keep allows.
func (g *group) possible(m *bdd.Manager, keep func(values []int64) bool) bdd.Ref {
	if !g.complete {
		return bdd.True
	}
	var kept []uint64
	for _, s := range g.signatures {
		if keep == nil || keep(g.examples[s]) {
			kept = append(kept, s)
		}
	}
	slices.Sort(kept)
	order := make([]int, len(g.comparisons))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return g.comparisons[a].variable - g.comparisons[b].variable })
	var build func(k int, of []uint64) bdd.Ref
	build = func(k int, of []uint64) bdd.Ref {
		if len(of) == 0 {
			return bdd.False
		}
		if k == len(order) {
			return bdd.True
		}
		var without, with []uint64
		for _, s := range of {
			if s>>order[k]&1 == 1 {
				with = append(with, s)
			} else {
				without = append(without, s)
			}
		}
		lo, hi := build(k+1, without), build(k+1, with)
		return m.Ite(m.Var(g.comparisons[order[k]].variable), hi, lo)
	}
	return build(0, kept)
}
