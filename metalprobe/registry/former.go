// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// maxFormer bounds how many tokens are remembered.
const maxFormer = 8192

// formerTokens remembers tokens that were good, by their hash. A machine that is left running when its entry ends goes on to
// report with the token that it was booted with: that is no attack, and no credential of the server says so any more.
type formerTokens struct {
	mu     sync.Mutex
	owners map[string]types.UID
	// ring holds the hashes in the order in which they came, next where the one that comes replaces another.
	ring []string
	next int
}

func newFormerTokens() *formerTokens { return &formerTokens{owners: map[string]types.UID{}} }

func (f *formerTokens) remember(hash string, owner types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.owners[hash]; known {
		return
	}
	if len(f.ring) < maxFormer {
		f.ring = append(f.ring, hash)
	} else {
		delete(f.owners, f.ring[f.next])
		f.ring[f.next] = hash
		f.next = (f.next + 1) % maxFormer
	}
	f.owners[hash] = owner
}

// belonged says whether a token was once good for a server.
func (f *formerTokens) belonged(hash string, owner types.UID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.owners[hash]
	return ok && known == owner
}
