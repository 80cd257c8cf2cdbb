// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"container/heap"
	"time"
)

// counter holds the machines that count against a limit, each until a moment. It counts them without a look at
// each of them: it is a heap.Interface, on top the one that ceases to count first. The zero value counts none.
type counter struct {
	list []limited
	at   map[string]int // the index in list, by name
}

// limited is a machine that counts until a moment; the zero time where it cannot be told when it ceases to.
type limited struct {
	name  string
	until time.Time
}

// set counts a machine until a moment, instead of whatever was counted of it before.
func (t *counter) set(name string, until time.Time) {
	if i, ok := t.at[name]; ok {
		t.list[i].until = until
		heap.Fix(t, i)
		return
	}
	heap.Push(t, limited{name, until})
}

// drop counts a machine no more.
func (t *counter) drop(name string) {
	if i, ok := t.at[name]; ok {
		heap.Remove(t, i)
	}
}

// count is how many machines count now, besides the one that asks, and in which time the first of them ceases to; 0 where
// that cannot be told.
func (t *counter) count(asks string, now time.Time) (used int32, free time.Duration) {
	for len(t.list) > 0 && t.list[0].over(now) {
		heap.Pop(t)
	}
	used = int32(len(t.list))
	first := 0
	if at, ok := t.at[asks]; ok {
		used--
		if at == 0 { // the next is one of the two below it
			first = 1
			if len(t.list) > 2 && t.Less(2, 1) {
				first = 2
			}
		}
	}
	if first < len(t.list) && !t.list[first].until.IsZero() {
		free = t.list[first].until.Sub(now)
	}
	return used, free
}

func (c limited) over(now time.Time) bool { return !c.until.IsZero() && !c.until.After(now) }

func (t *counter) Len() int { return len(t.list) }

func (t *counter) Less(i, j int) bool {
	a, b := t.list[i].until, t.list[j].until
	return !a.IsZero() && (b.IsZero() || a.Before(b))
}

func (t *counter) Swap(i, j int) {
	t.list[i], t.list[j] = t.list[j], t.list[i]
	t.at[t.list[i].name], t.at[t.list[j].name] = i, j
}

func (t *counter) Push(x any) {
	c, ok := x.(limited)
	if !ok {
		return
	}
	if t.at == nil {
		t.at = map[string]int{}
	}
	t.at[c.name] = len(t.list)
	t.list = append(t.list, c)
}

func (t *counter) Pop() any {
	last := len(t.list) - 1
	c := t.list[last]
	t.list = t.list[:last]
	delete(t.at, c.name)
	return c
}
