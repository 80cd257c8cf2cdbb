// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"

	"github.com/metalaw/metalaw/engine/selection"
)

// slots are servers by their number, in order. Four bytes for each keep an index over many labels small.
type slots []uint32

func (s slots) with(n uint32) slots {
	if at, found := slices.BinarySearch(s, n); !found {
		return slices.Insert(s, at, n)
	}
	return s
}

func (s slots) without(n uint32) slots {
	if at, found := slices.BinarySearch(s, n); found {
		return slices.Delete(s, at, at+1)
	}
	return s
}

// label is a key with its value.
type label struct{ key, value string }

// postings are the servers that bear a label.
type postings map[label]slots

func (p postings) add(labels map[string]string, n uint32) {
	for key, value := range labels {
		l := label{key, value}
		p[l] = p[l].with(n)
	}
}

func (p postings) remove(labels map[string]string, n uint32) {
	for key, value := range labels {
		l := label{key, value}
		if p[l] = p[l].without(n); len(p[l]) == 0 {
			delete(p, l)
		}
	}
}

// narrow returns the shortest list that holds every server which a selector can match: that of one of its labels, or the
// whole.
func (p postings) narrow(selector *selection.Selector, whole slots) slots {
	shortest := whole
	if selector == nil {
		return shortest
	}
	consider := func(key, value string) {
		if list := p[label{key, value}]; len(list) < len(shortest) {
			shortest = list
		}
	}
	for key, value := range selector.MatchLabels {
		consider(key, value)
	}
	for _, e := range selector.MatchExpressions {
		if e.Operator == "In" && len(e.Values) == 1 {
			consider(e.Key, e.Values[0])
		}
	}
	return shortest
}
