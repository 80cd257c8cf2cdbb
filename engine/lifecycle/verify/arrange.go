// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"slices"

	"github.com/metalaw/metalaw/engine/lifecycle"
)

// rounds is how often the questions are drawn towards those that they are asked with.
const rounds = 30

// arranged orders the primitives so that those which are asked together stand together: diagrams are small where what
// depends on each other is near. It begins with the vocabulary's order and moves each question to the middle of the
// expressions and guards that ask it, again and again (the heuristic known as FORCE). A fact's words are one question.
func (e *encoder) arranged() []*primitive {
	block := map[string]int{}
	blockOf := make([]int, len(e.primitives))
	sorted := make([]int, len(e.primitives))
	for i := range sorted {
		sorted[i] = i
	}
	slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(e.primitives[a].first(), e.primitives[b].first()) })
	for _, i := range sorted {
		p := *e.primitives[i]
		if p.kind == isWord {
			p.word = ""
		}
		at, ok := block[p.key()]
		if !ok {
			at = len(block)
			block[p.key()] = at
		}
		blockOf[i] = at
	}
	position := make([]float64, len(block))
	for i := range position {
		position[i] = float64(i)
	}
	sets := e.together(blockOf)
	for range rounds {
		position = pulled(position, sets)
	}
	slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(position[blockOf[a]], position[blockOf[b]]) })
	all := make([]*primitive, len(sorted))
	for i, at := range sorted {
		all[i] = e.primitives[at]
	}
	return all
}

// pulled moves each block to the mean of the middles of the sets that it is in, and numbers them by that.
func pulled(position []float64, sets [][]int) []float64 {
	sum, count := make([]float64, len(position)), make([]float64, len(position))
	for _, set := range sets {
		middle := 0.0
		for _, b := range set {
			middle += position[b]
		}
		middle /= float64(len(set))
		for _, b := range set {
			sum[b] += middle
			count[b]++
		}
	}
	order := make([]int, len(position))
	for b := range order {
		order[b] = b
		if count[b] == 0 {
			sum[b], count[b] = position[b], 1
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sum[a]/count[a], sum[b]/count[b]) })
	next := make([]float64, len(position))
	for i, b := range order {
		next[b] = float64(i)
	}
	return next
}

// together lists the blocks of every expression and of every guard.
func (e *encoder) together(blockOf []int) [][]int {
	var sets [][]int
	add := func(all []int) {
		slices.Sort(all)
		if all = slices.Compact(all); len(all) > 1 {
			sets = append(sets, all)
		}
	}
	for _, x := range e.expressions {
		add(blocksOf(e.forms[x].form, blockOf, nil))
	}
	for _, st := range e.ast.States {
		for _, x := range st.Exits {
			add(e.guardBlocks(x.When, blockOf, nil))
		}
		for _, x := range st.Ensure {
			add(e.guardBlocks(x.When, blockOf, nil))
		}
	}
	return sets
}

func blocksOf(f *form, blockOf []int, to []int) []int {
	if f.op == formPrimitive {
		to = append(to, blockOf[f.primitive])
	}
	for _, kid := range f.kids {
		to = blocksOf(kid, blockOf, to)
	}
	return to
}

func (e *encoder) guardBlocks(g *lifecycle.Condition, blockOf []int, to []int) []int {
	if g == nil {
		return to
	}
	if g.Op == lifecycle.IfAtom {
		to = blocksOf(e.forms[e.ast.Definitions[g.Atom]].form, blockOf, to)
	}
	for _, kid := range g.Kids {
		to = e.guardBlocks(kid, blockOf, to)
	}
	return to
}
