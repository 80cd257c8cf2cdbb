// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	linked "container/list"
	"sync"
)

// openWires bounds how many BMCs have a transport, with its connections, at a time: where a manager starts, or a fleet is registered,
// thousands are asked within the time that a connection is kept, and each takes 20 KB.
type openWires struct {
	most int

	mu sync.Mutex
	// byUse holds the wires, the one that was used last first.
	byUse *linked.List
	at    map[*wire]*linked.Element
}

func newOpenWires(most int) *openWires {
	return &openWires{most: most, byUse: linked.New(), at: map[*wire]*linked.Element{}}
}

// used notes that something was asked over a wire. Where there are too many it returns the one that nothing was asked over for longest.
func (o *openWires) used(w *wire) *wire {
	o.mu.Lock()
	defer o.mu.Unlock()
	if element, is := o.at[w]; is {
		o.byUse.MoveToFront(element)
	} else {
		o.at[w] = o.byUse.PushFront(w)
	}
	if o.byUse.Len() <= o.most {
		return nil
	}
	longest := o.byUse.Remove(o.byUse.Back()).(*wire)
	delete(o.at, longest)
	return longest
}

// gone notes that a wire has no transport any more.
func (o *openWires) gone(w *wire) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if element, is := o.at[w]; is {
		o.byUse.Remove(element)
		delete(o.at, w)
	}
}
