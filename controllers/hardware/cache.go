// SPDX-License-Identifier: Apache-2.0

// Package hardware stands between the reconcilers and the BMCs: it answers at once with what was last read, and reads
// and writes in the background, so that no worker ever waits for hardware.
package hardware

import (
	"context"
	"sync"
	"time"

	"github.com/metalaw/metalaw/redfish"
)

// Target says how to reach what a reconcile is about.
type Target struct {
	// Key is the one of the BMC in the pool of clients: its object's UID.
	Key         string
	Endpoint    redfish.Endpoint
	Credentials redfish.Credentials
	// URI is the one of the system at its BMC; empty where the subject is the BMC itself.
	URI string
	// Detail asks for what only more than one request can tell.
	Detail bool
}

// same says that two targets are one: the same system, reached the same way.
func (t Target) same(other Target) bool {
	return t.Key == other.Key && t.URI == other.URI && t.Credentials == other.Credentials && t.Endpoint.Equal(other.Endpoint)
}

// Clients hands out the one client of a BMC; *redfish.Pool is one.
type Clients interface {
	Get(key string, endpoint redfish.Endpoint, credentials redfish.Credentials) redfish.BMC
}

// Reading is the last word of a BMC about one subject.
type Reading[S any] struct {
	// Value is what the last successful read returned; the zero value where there was none.
	Value S
	// At is when it arrived; zero where no read succeeded yet. Begun is when it was asked for: what happened after that
	// may not be in it.
	At, Begun time.Time
	// Err is what the last read failed with; nil where it succeeded.
	Err error
	// FailingSince is when reads began to fail; zero where the last succeeded.
	FailingSince time.Time
	// Tried says that at least one read has ended, well or not.
	Tried bool
}

// Reachable says that the last read succeeded.
func (r Reading[S]) Reachable() bool { return r.Tried && r.Err == nil }

// Options sets up a Cache.
type Options[S any] struct {
	Clients Clients
	// Read performs one read.
	Read func(ctx context.Context, bmc redfish.BMC, target Target) (S, error)
	// Same says that two values are equal in everything that a reconcile could act on.
	Same func(a, b S) bool
	// TakenAt is when the BMC was asked for what a value says, where that may be before the read that returned it began;
	// nil where it never is.
	TakenAt func(S) time.Time
	// Wake is called, from any goroutine, when a subject's reading changed, when a read that was waited for has ended,
	// and when a job has ended.
	Wake func(subject string)
	// Timeout bounds one read or job; default 60 s.
	Timeout time.Duration
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Cache keeps one reading and at most one job for each subject. It is safe for concurrent use. Its goroutines are those of
// reads and jobs in flight; the pool bounds how many requests they make at a time.
type Cache[S any] struct {
	options Options[S]
	base    context.Context
	cancel  context.CancelFunc
	flights sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	subjects map[string]*subject[S]
}

type subject[S any] struct {
	reading  Reading[S]
	inFlight bool
	// again asks for one more read after the one in flight, which may have begun too early.
	again    bool
	waited   bool
	failures int
	nextTry  time.Time
	jobs     []*Job
	// target is what the reading was asked of; a reading of another target says nothing.
	target Target
}

// NewCache makes a Cache; Close ends its work.
func NewCache[S any](o Options[S]) *Cache[S] {
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	base, cancel := context.WithCancel(context.Background()) //nolint:gosec // Close calls cancel
	return &Cache[S]{options: o, base: base, cancel: cancel, subjects: map[string]*subject[S]{}}
}

// Start implements manager.Runnable: the cache is closed when the manager stops.
func (d *Cache[S]) Start(ctx context.Context) error {
	<-ctx.Done()
	d.Close()
	return nil
}

// Close ends all reads and jobs and waits for them.
func (d *Cache[S]) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.cancel()
	d.flights.Wait()
}

// Forget drops what is known of a subject that no longer exists.
func (d *Cache[S]) Forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.subjects, name)
}

// Reading returns the last word about a subject, at once.
func (d *Cache[S]) Reading(name string) Reading[S] {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.subjects[name]; ok {
		return s.reading
	}
	return Reading[S]{}
}

// Refresh sees to it that a reading no older than maxAge exists, and returns the one there is and how long until a next
// look makes sense. A read that is needed is begun in the background and wakes the subject when it ends. While reads
// fail they are begun at growing intervals only, whatever is asked.
func (d *Cache[S]) Refresh(name string, target Target, maxAge time.Duration) (Reading[S], bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.subject(name)
	s.aim(target)
	now := d.options.Now()
	if s.reading.Reachable() && now.Sub(s.reading.At) <= maxAge {
		return s.reading, true
	}
	s.waited = true
	if s.inFlight || now.Before(s.nextTry) {
		return s.reading, false
	}
	d.beginRead(name, s, target)
	return s.reading, false
}

// Peek is the last reading of a subject from a target, and asks for none. fresh says that it is no older than maxAge.
func (d *Cache[S]) Peek(name string, target Target, maxAge time.Duration) (reading Reading[S], fresh bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.subjects[name]
	if !ok || !s.target.same(target) {
		return Reading[S]{}, false
	}
	return s.reading, s.reading.Reachable() && d.options.Now().Sub(s.reading.At) <= maxAge
}

// NextTry is how long until a read that fails may be begun again; 0 where it may be begun now.
func (d *Cache[S]) NextTry(name string) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.subjects[name]; ok {
		return max(0, s.nextTry.Sub(d.options.Now()))
	}
	return 0
}

// Retry forgets that reads were failing, so that the next Refresh reads at once: for changed credentials or addresses,
// and for a BMC that was seen to answer again.
func (d *Cache[S]) Retry(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.subjects[name]; ok {
		s.nextTry = time.Time{}
		s.failures = 0
	}
}

// aim drops what was read from another target.
func (s *subject[S]) aim(target Target) {
	if !s.target.same(target) {
		s.target, s.reading, s.failures, s.nextTry = target, Reading[S]{}, 0, time.Time{}
	}
}

func (d *Cache[S]) subject(name string) *subject[S] {
	s, ok := d.subjects[name]
	if !ok {
		s = &subject[S]{}
		d.subjects[name] = s
	}
	return s
}

// beginRead is called with the lock held.
func (d *Cache[S]) beginRead(name string, s *subject[S], target Target) {
	if d.closed {
		return
	}
	s.inFlight = true
	began := d.options.Now()
	d.flights.Go(func() {
		ctx, cancel := context.WithTimeout(d.base, d.options.Timeout)
		defer cancel()
		value, err := d.options.Read(ctx, d.options.Clients.Get(target.Key, target.Endpoint, target.Credentials), target)
		d.endRead(name, s, target, began, value, err)
	})
}

func (d *Cache[S]) endRead(name string, s *subject[S], target Target, began time.Time, value S, err error) {
	d.mu.Lock()
	now := d.options.Now()
	before := s.reading
	s.inFlight = false
	if !s.target.same(target) { // the BMC was replaced meanwhile: its former answer says nothing of the new one
		s.waited = false
		closed := d.closed
		d.mu.Unlock()
		if !closed {
			d.options.Wake(name)
		}
		return
	}
	s.reading.Tried = true
	s.reading.Err = err
	if err != nil {
		if s.reading.FailingSince.IsZero() {
			s.reading.FailingSince = now
		}
		s.failures++
		s.nextTry = now.Add(backoff(s.failures))
	} else {
		at := now
		if d.options.TakenAt != nil {
			if taken := d.options.TakenAt(value); !taken.IsZero() && taken.Before(began) {
				at, began = taken, taken
			}
		}
		if !began.Before(before.Begun) { // an older value than the one that is known tells nothing
			s.reading.Value, s.reading.At, s.reading.Begun = value, at, began
		}
		s.reading.FailingSince, s.failures, s.nextTry = time.Time{}, 0, time.Time{}
	}
	wake := s.waited || changed(before, s.reading, d.options.Same)
	s.waited = false
	if s.again && err == nil {
		s.waited = true
		d.beginRead(name, s, target)
	}
	s.again = false
	closed := d.closed
	d.mu.Unlock()
	if wake && !closed {
		d.options.Wake(name)
	}
}

func changed[S any](before, after Reading[S], same func(a, b S) bool) bool {
	if before.Reachable() != after.Reachable() || before.Tried != after.Tried {
		return true
	}
	return after.Reachable() && !same(before.Value, after.Value)
}

// backoff grows from one second to thirty: a dead BMC costs one connection attempt in half a minute, and a BMC that
// comes back is noticed within that.
func backoff(failures int) time.Duration {
	d := time.Second << min(failures-1, 5)
	return min(d, 30*time.Second)
}
