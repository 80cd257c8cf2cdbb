// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies/index"
)

// A claim that is spread may get a server by a change of another one: where a place comes or goes, the emptiest place
// may be another; where a claim that counts gets or loses a server, its place has one more or less.

// respreadBy marks the classes for whose spread a change of a server can matter though they cannot have that server. It says whether
// there are any.
func (p *pending) respreadBy(change index.Change) bool {
	found := false
	for c := range p.classes.spread {
		if c.placeOf(change.After) != c.placeOf(change.Before) || p.recounts(c, change) {
			c.offered, found = true, true
		}
	}
	return found
}

// recounts says that a change alters how many of the claims that count for a class some place has. A claim that is not known may count.
func (p *pending) recounts(c *equivalenceClass, change index.Change) bool {
	before, after := c.holderOf(change.Before), c.holderOf(change.After)
	return before != after && slices.ContainsFunc([]holder{before, after}, func(h holder) bool {
		n := p.all[h.Claim.Namespace][types.UID(h.UID)]
		return h.Claim.Namespace == c.namespace && (n == nil || c.counts(n))
	})
}

// respreadIn marks the classes of a namespace for whose spread some claims count, or if none are given any. It says whether there
// are any.
func (k *equivalenceClasses) respreadIn(namespace string, those ...*namespaceClaim) bool {
	found := false
	for c := range k.spread {
		if c.namespace == namespace && (len(those) == 0 || slices.ContainsFunc(those, c.counts)) {
			c.offered, found = true, true
		}
	}
	return found
}

// counts says that a claim counts for the spread of the class.
func (c *equivalenceClass) counts(n *namespaceClaim) bool {
	return n != nil && c.placed.Spread().Counts(n.claim.Labels, n.ask.GangName())
}

// placeOf is the place of a server that the class could ever have, if the policy lets it; empty for any other.
func (c *equivalenceClass) placeOf(e *index.Entry) string {
	if e == nil {
		return ""
	}
	if ok, _, _ := selection.Feasible(c.spec, e.State); !ok || !c.accepts(e) {
		return ""
	}
	return c.placed.Spread().Place(e.Candidate().Facts())
}

// holder is what a server says of the claim that it is written for.
type holder struct {
	claims.Holder
	place string
}

func (c *equivalenceClass) holderOf(e *index.Entry) holder {
	if e == nil || !e.State.Claimed {
		return holder{}
	}
	return holder{e.Holder, c.placed.Spread().Place(e.Candidate().Facts())}
}

// respread has the next cycle look at the claims for whose spread a claim counts, of which the server changed by our own write, or is no
// longer assumed. It says whether there are any.
func (p *pending) respread(namespace string, uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.all[namespace][uid]; n != nil {
		return p.classes.respreadIn(namespace, n)
	}
	return p.classes.respreadIn(namespace)
}
