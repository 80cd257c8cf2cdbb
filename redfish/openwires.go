// SPDX-License-Identifier: Apache-2.0

package redfish

import "sync"

// openWires bounds how many BMCs have a transport, with its connections, at a time: where a manager starts, or a fleet is registered,
// thousands are asked within the time that a connection is kept, and each takes 20 KB.
type openWires struct {
	most int

	mu sync.Mutex
	// turns counts the uses; last has the turn at which each wire was used last.
	turns int
	last  map[*wire]int
}

func newOpenWires(most int) *openWires { return &openWires{most: most, last: map[*wire]int{}} }

// used notes that something was asked over a wire. Where there are too many it returns the one that nothing was asked over for longest.
func (o *openWires) used(w *wire) (longest *wire) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.turns++
	o.last[w] = o.turns
	if len(o.last) <= o.most {
		return nil
	}
	for other, turn := range o.last {
		if longest == nil || turn < o.last[longest] {
			longest = other
		}
	}
	delete(o.last, longest)
	return longest
}

// gone notes that a wire has no transport any more.
func (o *openWires) gone(w *wire) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.last, w)
}
