// SPDX-License-Identifier: Apache-2.0

// Package peers bounds what each peer of a server may take: requests, connections and memory. A peer is an IPv4 address or an IPv6 /64.
package peers

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Of gives the peer of a remote address. An address that cannot be read is one peer.
func Of(remote string) netip.Prefix {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}
	}
	address = address.Unmap()
	bits := 32
	if address.Is6() {
		bits = 64
	}
	prefix, err := address.WithZone("").Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}

// maxPeers bounds how many peers are told apart; beyond it the newcomers count as one.
const maxPeers = 16384

// Table keeps a value for each peer. It forgets the values of silent peers that are idle, so that its memory is bounded.
type Table[T any] struct {
	fresh func() T
	idle  func(T) bool
	after time.Duration

	mu     sync.Mutex
	known  map[netip.Prefix]*row[T]
	shared T
}

type row[T any] struct {
	value T
	last  time.Time
}

// NewTable makes a table. A value is forgotten once its peer was silent for a time, and idle allows it.
func NewTable[T any](fresh func() T, after time.Duration, idle func(T) bool) *Table[T] {
	return &Table[T]{fresh: fresh, idle: idle, after: after, known: map[netip.Prefix]*row[T]{}, shared: fresh()}
}

// Of gives the value of the peer of a remote address.
func (t *Table[T]) Of(remote string, now time.Time) T {
	key := Of(remote)
	t.mu.Lock()
	defer t.mu.Unlock()
	entry := t.known[key]
	if entry == nil {
		if len(t.known) >= maxPeers {
			t.forget(now)
		}
		if len(t.known) >= maxPeers {
			return t.shared
		}
		entry = &row[T]{value: t.fresh()}
		t.known[key] = entry
	}
	entry.last = now
	return entry.value
}

func (t *Table[T]) forget(now time.Time) {
	for key, entry := range t.known {
		if now.Sub(entry.last) >= t.after && t.idle(entry.value) {
			delete(t.known, key)
		}
	}
}

// Rates limits how many requests each peer may send.
type Rates struct{ limiters *Table[*rate.Limiter] }

// NewRates allows each peer so many requests a second in the long run, and a burst at once.
func NewRates(perSecond float64, burst int) *Rates {
	return &Rates{NewTable(func() *rate.Limiter { return rate.NewLimiter(rate.Limit(perSecond), burst) }, Refill(perSecond, burst),
		func(*rate.Limiter) bool { return true })}
}

// Refill is how long the burst of a silent peer takes until it is whole again: forgetting the peer then changes nothing.
func Refill(perSecond float64, burst int) time.Duration {
	return time.Duration(float64(burst) / perSecond * float64(time.Second))
}

// Allow counts a request of a remote address, and says whether it may be served.
func (r *Rates) Allow(remote string, now time.Time) bool {
	return r.limiters.Of(remote, now).AllowN(now, 1)
}
