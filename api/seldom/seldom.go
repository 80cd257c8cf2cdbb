// SPDX-License-Identifier: Apache-2.0

// Package seldom has the same thing said once in a while only, however often it happens.
package seldom

import (
	"sync"
	"time"
)

// Teller remembers what was told. It is safe for concurrent use.
type Teller struct {
	pause time.Duration
	most  int

	mu   sync.Mutex
	told map[string]time.Time
}

// New makes a Teller that remembers so many keys at most, each for as long as it is not to be told again.
func New(pause time.Duration, most int) *Teller {
	return &Teller{pause: pause, most: most, told: map[string]time.Time{}}
}

// Due says whether to tell of a key now, and remembers that it is told. Where too much was told of late nothing new is.
func (t *Teller) Due(key string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last, known := t.told[key]; known && now.Sub(last) < t.pause {
		return false
	}
	if len(t.told) >= t.most {
		for other, last := range t.told {
			if now.Sub(last) >= t.pause {
				delete(t.told, other)
			}
		}
		if len(t.told) >= t.most {
			return false
		}
	}
	t.told[key] = now
	return true
}
