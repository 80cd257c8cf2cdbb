// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"sync"

	"github.com/metalaw/metalaw/engine/diag"
)

// Cache remembers what documents were compiled to: claims of one kind bear the same one, and each is read many times. The
// zero Cache is ready for use, also by many goroutines at once.
type Cache struct {
	mu  sync.RWMutex
	all map[string]parsed
	// length is that of all documents together.
	length int
}

type parsed struct {
	placement *Placement
	found     diag.List
}

// maxCached bounds the length of all documents that are remembered; compiled they take about forty times as much. When there
// is more, all are forgotten, which costs one compilation of each that is still in use.
const maxCached = 512 << 10

// Parse is that of the package, for a document that findings call File. The findings are shared and must not be changed.
func (c *Cache) Parse(text string) (*Placement, diag.List) {
	if len(text) > MaxBytes {
		return Parse(File, text)
	}
	c.mu.RLock()
	known, ok := c.all[text]
	c.mu.RUnlock()
	if ok {
		return known.placement, known.found
	}
	known.placement, known.found = Parse(File, text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || c.length+len(text) > maxCached {
		c.all, c.length = map[string]parsed{}, 0
	}
	if _, twice := c.all[text]; !twice {
		c.length += len(text)
	}
	c.all[text] = known
	return known.placement, known.found
}
