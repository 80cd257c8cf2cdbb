// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"sync"

	"github.com/metalaw/metalaw/engine/diag"
)

// Cache remembers what documents were compiled to: claims of one kind bear the same one, and each is read many times. The
// zero Cache is ready for use, also by many goroutines at once.
type Cache struct {
	mu sync.RWMutex
	// recent are the documents that were asked for since former became the former ones.
	recent, former map[string]parsed
	// length is that of all recent documents together.
	length int
}

type parsed struct {
	placement *Placement
	found     diag.List
}

// maxCached bounds the length of all documents that are remembered; compiled they take about forty times as much. When half of that
// was asked for, what was not asked for meanwhile is forgotten.
const maxCached = 512 << 10

// Parse is that of the package, for a document that findings call File. The findings are shared and must not be changed.
func (c *Cache) Parse(text string) (*Placement, diag.List) {
	if len(text) > MaxBytes {
		return Parse(File, text)
	}
	c.mu.RLock()
	known, ok := c.recent[text]
	old, was := c.former[text]
	c.mu.RUnlock()
	switch {
	case ok:
		return known.placement, known.found
	case was:
		known = old
	default:
		known.placement, known.found = Parse(File, text)
	}
	c.keep(text, known)
	return known.placement, known.found
}

// keep remembers a document as one that was asked for.
func (c *Cache) keep(text string, known parsed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.recent[text]; twice {
		return
	}
	if c.recent == nil || c.length+len(text) > maxCached/2 {
		c.recent, c.former, c.length = map[string]parsed{}, c.recent, 0
	}
	c.recent[text] = known
	c.length += len(text)
}
