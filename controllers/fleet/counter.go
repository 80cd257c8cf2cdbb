// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"container/heap"
	"time"
)

// counter holds the machines that count against a limit, each until a moment. It counts them without a look at
// each of them. The zero value counts none.
type counter struct {
	order ending
}

// counted is a machine that counts until a moment; the zero time where it cannot be told when it ceases to.
type counted struct {
	name  string
	until time.Time
}

// set counts a machine until a moment, instead of whatever was counted of it before.
func (t *counter) set(name string, until time.Time) {
	if i, ok := t.order.at[name]; ok {
		t.order.list[i].until = until
		heap.Fix(&t.order, i)
		return
	}
	heap.Push(&t.order, counted{name, until})
}

// drop counts a machine no more.
func (t *counter) drop(name string) {
	if i, ok := t.order.at[name]; ok {
		heap.Remove(&t.order, i)
	}
}

// count is how many machines count now, besides the one that asks, and in which time the first of them ceases to; 0 where
// that cannot be told.
func (t *counter) count(asks string, now time.Time) (used int32, free time.Duration) {
	for len(t.order.list) > 0 && t.order.list[0].over(now) {
		heap.Pop(&t.order)
	}
	list := t.order.list
	used = int32(len(list))
	first := 0
	if at, ok := t.order.at[asks]; ok {
		used--
		if at == 0 { // the next is one of the two below it
			first = 1
			if len(list) > 2 && t.order.Less(2, 1) {
				first = 2
			}
		}
	}
	if first < len(list) && !list[first].until.IsZero() {
		free = list[first].until.Sub(now)
	}
	return used, free
}

func (c counted) over(now time.Time) bool { return !c.until.IsZero() && !c.until.After(now) }

// ending is a heap of machines, on top the one that ceases to count first. It implements heap.Interface.
type ending struct {
	list []counted
	at   map[string]int
}

func (e *ending) Len() int { return len(e.list) }

func (e *ending) Less(i, j int) bool {
	a, b := e.list[i].until, e.list[j].until
	return !a.IsZero() && (b.IsZero() || a.Before(b))
}

func (e *ending) Swap(i, j int) {
	e.list[i], e.list[j] = e.list[j], e.list[i]
	e.at[e.list[i].name], e.at[e.list[j].name] = i, j
}

func (e *ending) Push(x any) {
	c, ok := x.(counted)
	if !ok {
		return
	}
	if e.at == nil {
		e.at = map[string]int{}
	}
	e.at[c.name] = len(e.list)
	e.list = append(e.list, c)
}

func (e *ending) Pop() any {
	last := len(e.list) - 1
	c := e.list[last]
	e.list = e.list[:last]
	delete(e.at, c.name)
	return c
}
