// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// readInterval is the least time between the beginnings of two uncached reads, and readTimeout bounds one read.
const (
	readInterval = 250 * time.Millisecond
	readTimeout  = 10 * time.Second
)

// sharedRead lets all who wait for the FleetControl share one uncached read. Each gets the first read that begins after it
// asked, so it sees every freeze that was stored by then. The zero value is ready.
type sharedRead struct {
	mu sync.Mutex
	// next has not begun, and whoever asks joins it; nil where nobody waits for one.
	next *reading
	// began is when the last read began.
	began time.Time
}

// reading is one read. Its answer is there once done is closed.
type reading struct {
	done    chan struct{}
	control *policyv1alpha1.FleetControl
	err     error
}

// get waits for the next read and returns a copy of the FleetControl; nil where there is none.
func (s *sharedRead) get(ctx context.Context, from client.Reader, interval time.Duration) (*policyv1alpha1.FleetControl, error) {
	r := s.join(ctx, from, interval)
	select {
	case <-r.done:
		return r.control.DeepCopy(), r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *sharedRead) join(ctx context.Context, from client.Reader, interval time.Duration) *reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = &reading{done: make(chan struct{})}
		// The one that asked first may give up; the others still want an answer.
		go s.carryOut(context.WithoutCancel(ctx), from, s.next, interval-time.Since(s.began))
	}
	return s.next
}

// carryOut begins a read after a time, until when others may join.
func (s *sharedRead) carryOut(ctx context.Context, from client.Reader, r *reading, after time.Duration) {
	defer close(r.done)
	time.Sleep(after)
	s.mu.Lock()
	s.next, s.began = nil, time.Now()
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	r.control, r.err = control(ctx, from)
}
