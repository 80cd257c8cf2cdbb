// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/scheduler/index"
	"github.com/metalaw/metalaw/policies"
)

// pending is every open claim as it was seen last, by the watch or in the answer to our own write. It does no I/O and is
// safe for concurrent use.
type pending struct {
	mu     sync.Mutex
	claims map[types.UID]*waiting
}

// waiting is one open claim and the moment at which this process saw it first.
type waiting struct {
	claim *v1alpha1.ServerClaim
	since time.Time
}

func newPending() *pending { return &pending{claims: map[types.UID]*waiting{}} }

// saw takes in a claim from the watch. It says whether the change can matter to what the claim gets.
func (p *pending) saw(c *v1alpha1.ServerClaim, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.claims[c.UID]
	if before != nil && !index.Newer(c.ResourceVersion, before.claim.ResourceVersion) {
		return false
	}
	if !open(c) {
		delete(p.claims, c.UID)
		return false
	}
	if before == nil {
		p.claims[c.UID] = &waiting{c, now}
		return true
	}
	p.claims[c.UID] = &waiting{c, before.since}
	return asksAnew(before.claim, c)
}

// asksAnew leaves out the writes of status, and our own of serverRef.
func asksAnew(before, after *v1alpha1.ServerClaim) bool {
	return before.Generation != after.Generation || policies.PriorityOf(before) != policies.PriorityOf(after) ||
		!maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations)
}

// wrote takes in the answer to our own write. A claim that is gone by now stays gone.
func (p *pending) wrote(c *v1alpha1.ServerClaim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.claims[c.UID]
	if before == nil || !index.Newer(c.ResourceVersion, before.claim.ResourceVersion) {
		return
	}
	if !open(c) {
		delete(p.claims, c.UID)
		return
	}
	p.claims[c.UID] = &waiting{c, before.since}
}

func (p *pending) gone(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.claims, uid)
}

// get returns an open claim and since when it is open; nil where the claim is not open.
func (p *pending) get(uid types.UID) (*v1alpha1.ServerClaim, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.claims[uid]; w != nil {
		return w.claim, w.since
	}
	return nil, time.Time{}
}

func (p *pending) empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.claims) == 0
}

// inOrder returns the open claims, the first to be served first: by priority, then age, then namespace and name.
func (p *pending) inOrder() []*v1alpha1.ServerClaim {
	p.mu.Lock()
	all := make([]*v1alpha1.ServerClaim, 0, len(p.claims))
	for _, w := range p.claims {
		all = append(all, w.claim)
	}
	p.mu.Unlock()
	slices.SortFunc(all, before)
	return all
}

func before(a, b *v1alpha1.ServerClaim) int {
	return cmp.Or(
		cmp.Compare(policies.PriorityOf(b), policies.PriorityOf(a)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.UID, b.UID),
	)
}
