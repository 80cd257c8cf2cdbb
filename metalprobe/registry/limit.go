// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// maxSources bounds how many sources are counted apart; beyond it the newcomers count as one.
	maxSources = 16384
	// queueTime is how long a request waits for its turn.
	queueTime = 5 * time.Second
	// limitedRetry is when those may try again who send too much, or at a time when too much is going on.
	limitedRetry = 5 * time.Second
	// sourceShare is the part of all turns that one source may take, so that slow senders do not lock out the others.
	sourceShare = 4
)

// sources limits the requests of each source, by rate and by how many are served at once.
type sources struct {
	limit rate.Limit
	burst int
	turns chan struct{}

	mu     sync.Mutex
	known  map[netip.Prefix]*source
	shared *source
}

type source struct {
	limiter *rate.Limiter
	turns   chan struct{}
	last    time.Time
}

func newSources(perSecond float64, burst, concurrency int) *sources {
	s := &sources{
		limit: rate.Limit(perSecond),
		burst: burst,
		turns: make(chan struct{}, concurrency),
		known: map[netip.Prefix]*source{},
	}
	s.shared = s.newSource()
	return s
}

func (s *sources) newSource() *source {
	return &source{limiter: rate.NewLimiter(s.limit, s.burst), turns: make(chan struct{}, max(1, cap(s.turns)/sourceShare))}
}

// enter counts one request of a remote address and waits for its turn. leave must be called where it is not nil.
func (s *sources) enter(ctx context.Context, remote string, now time.Time) (leave func(), refused *refusal) {
	from := s.find(prefixOf(remote), now)
	if !from.limiter.AllowN(now, 1) {
		return nil, &refusal{
			status: http.StatusTooManyRequests, outcome: OutcomeLimited, retryAfter: limitedRetry,
			message: "too many requests from this address", remedy: "wait, then try again",
		}
	}
	ctx, cancel := context.WithTimeout(ctx, queueTime)
	defer cancel()
	if take(ctx, from.turns) {
		if take(ctx, s.turns) {
			return func() { <-s.turns; <-from.turns }, nil
		}
		<-from.turns
	}
	return nil, &refusal{
		status: http.StatusServiceUnavailable, outcome: OutcomeLimited, retryAfter: limitedRetry,
		message: "too many requests at once", remedy: "wait, then try again",
	}
}

func take(ctx context.Context, turns chan struct{}) bool {
	select {
	case turns <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *sources) find(key netip.Prefix, now time.Time) *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry := s.known[key]
	if entry == nil {
		if len(s.known) >= maxSources {
			s.forgetIdle(now)
		}
		if len(s.known) >= maxSources {
			return s.shared
		}
		entry = s.newSource()
		s.known[key] = entry
	}
	entry.last = now
	return entry
}

// forgetIdle drops those whose bucket is full again: forgetting them changes nothing.
func (s *sources) forgetIdle(now time.Time) {
	refilled := time.Duration(float64(s.burst) / float64(s.limit) * float64(time.Second))
	for key, entry := range s.known {
		if now.Sub(entry.last) >= refilled && len(entry.turns) == 0 {
			delete(s.known, key)
		}
	}
}

// prefixOf gives the IPv4 address or the IPv6 /64 of a remote address; what cannot be read is one source.
func prefixOf(remote string) netip.Prefix {
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
