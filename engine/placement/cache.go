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
}

type parsed struct {
	placement *Placement
	found     diag.List
}

// maxCached bounds how many documents are remembered. When there are more, all are forgotten, which costs one compilation
// of each that is still in use.
const maxCached = 4096

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
	if c.all == nil || len(c.all) >= maxCached {
		c.all = map[string]parsed{}
	}
	c.all[text] = known
	return known.placement, known.found
}
