// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/metalaw/metalaw/internal/peers"
)

const (
	// queueTime is how long a request waits for its turn.
	queueTime = 5 * time.Second
	// limitedRetry is when those may try again who send too much, or at a time when too much is going on.
	limitedRetry = 5 * time.Second
	// sourceShare is the part of all turns that one source may take, so that slow senders do not lock out the others.
	sourceShare = 4
)

// sources limits the requests of each source, by rate and by how many are served at once.
type sources struct {
	known *peers.Table[*source]
	turns chan struct{}
}

type source struct {
	limiter *rate.Limiter
	turns   chan struct{}
}

func newSources(perSecond float64, burst, concurrency int) *sources {
	fresh := func() *source {
		return &source{limiter: rate.NewLimiter(rate.Limit(perSecond), burst), turns: make(chan struct{}, max(1, concurrency/sourceShare))}
	}
	return &sources{
		known: peers.NewTable(fresh, peers.Refill(perSecond, burst), func(s *source) bool { return len(s.turns) == 0 }),
		turns: make(chan struct{}, concurrency),
	}
}

// count counts one request of a remote address, and gives the source whose turns it may take.
func (s *sources) count(remote string, now time.Time) (*source, *refusal) {
	from := s.known.Of(remote, now)
	if !from.limiter.AllowN(now, 1) {
		return nil, &refusal{
			status: http.StatusTooManyRequests, outcome: OutcomeLimited, retryAfter: limitedRetry,
			message: "too many requests from this address", remedy: "wait, then try again",
		}
	}
	return from, nil
}

// turn waits for the turn of a request. leave must be called where it is not nil.
func (s *sources) turn(ctx context.Context, from *source) (leave func(), refused *refusal) {
	ctx, cancel := context.WithTimeout(ctx, queueTime)
	defer cancel()
	if take(ctx, from.turns) {
		if take(ctx, s.turns) {
			return func() { <-s.turns; <-from.turns }, nil
		}
		<-from.turns
	}
	return nil, tooManyAtOnce()
}

func tooManyAtOnce() *refusal {
	return &refusal{
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
