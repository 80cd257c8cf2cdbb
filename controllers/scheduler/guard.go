// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// guard keeps the binding of a claim and its end apart, so that a claim that ends never misses a binding in flight, and
// none begins afterwards.
type guard struct {
	mu     sync.Mutex
	claims map[types.UID]*guarded
}

type guarded struct {
	mu    sync.Mutex // locked while the claim is being bound, or ends
	users int        // who holds or waits for mu; under guard.mu
	ended bool       // under guard.mu
}

func newGuard() *guard { return &guard{claims: map[types.UID]*guarded{}} }

// bind runs f unless one of the claims has ended. No other caller waits for one claim while it keeps another, so that the order of
// the claims does not matter as long as no claim is bound twice at the same time.
func (g *guard) bind(uids []types.UID, f func()) {
	if len(uids) == 0 {
		f()
		return
	}
	c := g.enter(uids[0], false)
	defer g.leave(uids[0], c)
	c.mu.Lock()
	defer c.mu.Unlock()
	g.mu.Lock()
	ended := c.ended
	g.mu.Unlock()
	if !ended {
		g.bind(uids[1:], f)
	}
}

// isBound says that the claim is being bound right now.
func (g *guard) isBound(uid types.UID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.claims[uid]
	return c != nil && c.users > 0 && !c.ended
}

// end runs f once no binding of the claim is in flight. No binding begins any more, also after f has returned.
func (g *guard) end(uid types.UID, f func() error) error {
	c := g.enter(uid, true)
	defer g.leave(uid, c)
	c.mu.Lock()
	defer c.mu.Unlock()
	return f()
}

// forget drops what is known of a claim that is gone.
func (g *guard) forget(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.claims[uid]; c != nil {
		c.ended = false
		if c.users == 0 {
			delete(g.claims, uid)
		}
	}
}

func (g *guard) enter(uid types.UID, ends bool) *guarded {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.claims[uid]
	if c == nil {
		c = &guarded{}
		g.claims[uid] = c
	}
	c.users++
	c.ended = c.ended || ends
	return c
}

func (g *guard) leave(uid types.UID, c *guarded) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.users--
	if c.users == 0 && !c.ended {
		delete(g.claims, uid)
	}
}
