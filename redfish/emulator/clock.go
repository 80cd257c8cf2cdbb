// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Clock gives the emulator its time. The default is the time package, which testing/synctest replaces by itself.
type Clock interface {
	// Now is the present moment.
	Now() time.Time
	// AfterFunc runs f once, d from now, in a goroutine that may be any.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending AfterFunc.
type Timer interface {
	// Stop prevents the call and says whether it did. A repeated call returns false.
	Stop() bool
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// sleep waits for d by the clock. It returns false where ctx ended first.
func sleep(ctx context.Context, clock Clock, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	woken := make(chan struct{})
	timer := clock.AfterFunc(d, func() { close(woken) })
	defer timer.Stop()
	select {
	case <-woken:
		return true
	case <-ctx.Done():
		return false
	}
}

// ManualClock stands still until it is advanced, so that a test sees every transitional state for as long as it likes.
type ManualClock struct {
	mu      sync.Mutex
	now     time.Time
	pending []*manualTimer
}

type manualTimer struct {
	clock *ManualClock
	at    time.Time
	run   func()
}

// NewManualClock returns a clock that shows start.
func NewManualClock(start time.Time) *ManualClock { return &ManualClock{now: start} }

// Now is the moment that the clock was set or advanced to.
func (c *ManualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc runs f inside the call of Advance that reaches its moment.
func (c *ManualClock) AfterFunc(d time.Duration, f func()) Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &manualTimer{clock: c, at: c.now.Add(d), run: f}
	c.pending = append(c.pending, t)
	return t
}

// Advance moves the clock by d and runs what falls due, in order of time, in the caller's goroutine.
// What those calls schedule within d runs too.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	end := c.now.Add(d)
	c.mu.Unlock()
	for {
		c.mu.Lock()
		next := c.popBefore(end)
		if next == nil {
			c.now = end
			c.mu.Unlock()
			return
		}
		c.now = next.at
		c.mu.Unlock()
		next.run()
	}
}

// popBefore takes the earliest timer that is due by end; nil where there is none. c.mu is held.
func (c *ManualClock) popBefore(end time.Time) *manualTimer {
	best := -1
	for i, t := range c.pending {
		if !t.at.After(end) && (best < 0 || t.at.Before(c.pending[best].at)) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	t := c.pending[best]
	c.pending = slices.Delete(c.pending, best, best+1)
	return t
}

// Stop takes the timer off its clock.
func (t *manualTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	i := slices.Index(t.clock.pending, t)
	if i < 0 {
		return false
	}
	t.clock.pending = slices.Delete(t.clock.pending, i, i+1)
	return true
}
