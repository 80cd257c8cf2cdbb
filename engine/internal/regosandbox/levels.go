// SPDX-License-Identifier: Apache-2.0

package regosandbox

import (
	"math"
	"slices"
)

// maxLevels is how many levels of a value are told apart.
const maxLevels = 16

// levels are the logarithms of how many computed parts a value has at each level, the outermost first.
type levels []float64

func (l levels) total() float64 {
	sum := 0.0
	for _, n := range l {
		sum += n
	}
	return sum
}

// inner is a part of a value. The last level may stand for any number of them, and so is not used up.
func (l levels) inner() levels {
	if len(l) == 0 {
		return nil
	}
	if len(l) == maxLevels {
		return append(slices.Clone(l[1:maxLevels-1]), 0, l[maxLevels-1])
	}
	return l[1:]
}

// within is a value that holds so many computed parts like this one.
func (l levels) within(parts int) levels { return l.under(math.Log2(float64(max(parts, 1)))) }

// under is a value with such a level around this one.
func (l levels) under(level float64) levels {
	all := append(levels{level}, l...)
	if len(all) > maxLevels {
		last := all[maxLevels-1:].total()
		all = append(all[:maxLevels-1], last)
	}
	return all.trimmed()
}

// holding is a value with these parts. It has as many computed ones as they have together, and a part without any counts as one.
func holding(parts []levels) levels {
	inner, all := levels(nil), 0.0
	for _, part := range parts {
		inner = inner.or(part)
		all += math.Exp2(part.total())
	}
	return inner.under(max(0, math.Log2(max(all, 1))-inner.total()))
}

func (l levels) trimmed() levels {
	for len(l) > 0 && l[len(l)-1] == 0 {
		l = l[:len(l)-1]
	}
	return l
}

// or is a value that is like either.
func (l levels) or(other levels) levels {
	if len(other) > len(l) {
		l, other = other, l
	}
	if len(other) == 0 {
		return l
	}
	all := slices.Clone(l)
	for i, n := range other {
		all[i] = max(all[i], n)
	}
	return all
}
