// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"slices"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

// asking is an open claim as one pass looks at it.
type asking struct {
	claim *v1alpha1.ServerClaim
	spec  selection.ClaimSpec
	wrong error
	class *class
	// placed is the claim's placement; unplaced is why it cannot be read.
	placed   *placement.Placement
	unplaced string
	// priority is what the bundle grants of what the claim asks for; rank is that with what the claim has waited.
	priority, rank int64
	// offered says that the claim is looked at only because a server came up that could satisfy its class.
	offered bool
}

// take returns the claims that are to be looked at, the first to be served first, and marks them as looked at: by priority,
// then age, then namespace and name.
func (p *pending) take(granted bundle.Priority, now time.Time) []asking {
	p.mu.Lock()
	var due []asking
	for _, w := range p.claims {
		offered := w.class != nil && w.class.offered
		if !w.due && !offered {
			continue
		}
		due = append(due, w.asking(granted, now))
		w.due = false
	}
	for _, c := range p.classes.byKey {
		c.offered = false
	}
	p.mu.Unlock()
	slices.SortFunc(due, before)
	return due
}

func (w *waiting) asking(granted bundle.Priority, now time.Time) asking {
	priority := granted.Grant(w.claim.Namespace, w.priority)
	return asking{claim: w.claim, spec: w.spec, wrong: w.wrong, class: w.class, placed: w.placed, unplaced: w.unplaced,
		priority: priority, rank: granted.Aged(priority, now.Sub(w.claim.CreationTimestamp.Time)), offered: !w.due && w.refused != nil}
}

func before(a, b asking) int {
	return cmp.Or(
		cmp.Compare(b.rank, a.rank),
		a.claim.CreationTimestamp.Compare(b.claim.CreationTimestamp.Time),
		cmp.Compare(a.claim.Namespace, b.claim.Namespace),
		cmp.Compare(a.claim.Name, b.claim.Name),
		cmp.Compare(a.claim.UID, b.claim.UID),
	)
}
