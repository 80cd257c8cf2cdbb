// SPDX-License-Identifier: Apache-2.0

package counted

import (
	"sync"
	"time"
)

// mostCredit bounds the time between two leaders that counts because a process waited for its turn meanwhile.
const mostCredit = Time(30 * time.Second)

// Clock tells counted time in one process. It is safe for concurrent use.
type Clock struct {
	start   time.Time
	elapsed func() time.Duration

	mu sync.Mutex
	// seen is what the Lease held, and seenAt when this process read that, before it led.
	seen   Time
	seenAt time.Duration
	// base is counted time when elapsed was from; known says that this process continued a stored count.
	base  Time
	from  time.Duration
	known bool
}

// NewClock makes the clock of a process that started at a time, since when so much has elapsed by its monotonic clock.
func NewClock(start time.Time, elapsed func() time.Duration) *Clock {
	return &Clock{start: start, elapsed: elapsed}
}

// Await takes in a stored count that was read before this process leads. It counts from then on, within a bound: this
// process can vouch that the time passed. The first call counts.
func (c *Clock) Await(stored Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == 0 {
		c.seen, c.seenAt = stored, c.elapsed()
	}
}

// Continue takes in the stored count, zero for none. Counted time never goes back: a count of this process that is ahead
// stands.
func (c *Clock) Continue(stored Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.elapsed()
	own := c.now(now)
	if !c.known {
		own = max(stored, least)
		if c.seen != 0 {
			own = max(own, min(c.seen+Time(now-c.seenAt), stored+mostCredit))
		}
	}
	if !c.known || stored > own {
		c.base, c.from, c.known = max(stored, own), now, true
	}
}

// Now is the counted time; zero before a stored count was read. A nil clock knows none.
func (c *Clock) Now() Time {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now(c.elapsed())
}

func (c *Clock) now(elapsed time.Duration) Time {
	if !c.known {
		return 0
	}
	return c.base + Time(elapsed-c.from)
}

// Moment is a counted moment on the time scale of this process, the same for each call; recorded where it is not known.
func (c *Clock) Moment(at Time, recorded time.Time) time.Time {
	if c == nil {
		return recorded
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.now(c.elapsed()).Since(at); !ok {
		return recorded
	}
	return c.start.Add(c.from + time.Duration(at-c.base))
}
