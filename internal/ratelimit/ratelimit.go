// SPDX-License-Identifier: Apache-2.0

// Package ratelimit has the same thing said once in a while only, however often it happens.
package ratelimit

import (
	"sync"
	"time"
)

// Limiter remembers what was told. It is safe for concurrent use.
type Limiter struct {
	pause time.Duration
	most  int

	mu   sync.Mutex
	told map[string]time.Time
}

// New makes a Limiter that remembers so many keys at most, each for as long as it is not to be told again.
func New(pause time.Duration, most int) *Limiter {
	return &Limiter{pause: pause, most: most, told: map[string]time.Time{}}
}

// Due says whether to tell of a key now, and remembers that it is told. Where too much was told of late nothing new is.
func (l *Limiter) Due(key string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, known := l.told[key]; known && now.Sub(last) < l.pause {
		return false
	}
	if len(l.told) >= l.most {
		for other, last := range l.told {
			if now.Sub(last) >= l.pause {
				delete(l.told, other)
			}
		}
		if len(l.told) >= l.most {
			return false
		}
	}
	l.told[key] = now
	return true
}
