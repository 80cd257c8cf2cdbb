// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"net/netip"
	"sync"
)

// Budget bounds what all peers hold together, and what one of them holds.
type Budget struct {
	all, each int64

	mu   sync.Mutex
	held int64
	of   map[netip.Prefix]int64
}

// NewBudget lets all peers hold so much together, and one of them a part of it.
func NewBudget(all, each int64) *Budget {
	return &Budget{all: all, each: min(each, all), of: map[netip.Prefix]int64{}}
}

// Share is what one holder of a peer took. It is for one goroutine.
type Share struct {
	budget *Budget
	peer   netip.Prefix
	held   int64
}

// Share begins with nothing.
func (b *Budget) Share(peer netip.Prefix) *Share { return &Share{budget: b, peer: peer} }

// Take asks for more, and says whether there is room. It never waits, because those who hold the budget would decide for how long.
func (s *Share) Take(more int64) bool {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held+more > b.all || b.of[s.peer]+more > b.each {
		return false
	}
	b.held += more
	b.of[s.peer] += more
	s.held += more
	return true
}

// Return gives everything back.
func (s *Share) Return() {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= s.held
	if b.of[s.peer] -= s.held; b.of[s.peer] == 0 {
		delete(b.of, s.peer)
	}
	s.held = 0
}
