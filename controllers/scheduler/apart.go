// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies/index"
)

// Claims that keep apart from others may get a server by a change of another one: where a place comes or goes, the emptiest place
// may be another; where a claim that counts gets or loses a server, its place has one more or less.

// respread marks the classes for whose spread a change of a server can matter though they cannot have that server. Known finds a
// claim by its namespace and UID; one that is not known may count. It says whether there are any.
func (k *classes) respread(change index.Change, known func(namespace string, uid types.UID) *namespaceClaim) bool {
	found := false
	if len(k.spread) == 0 {
		return false
	}
	for c := range k.spread {
		if c.placeOf(change.After) != c.placeOf(change.Before) || c.recounts(change, known) {
			c.offered, found = true, true
		}
	}
	return found
}

// respreadIn marks the classes of a namespace that keep apart from some claims, or if none are given from any. It says whether there
// are any.
func (k *classes) respreadIn(namespace string, those ...*namespaceClaim) bool {
	found := false
	for c := range k.spread {
		if c.namespace == namespace && (len(those) == 0 || slices.ContainsFunc(those, c.keepsFrom)) {
			c.offered, found = true, true
		}
	}
	return found
}

// keepsFrom says that a claim counts for the spread of the class.
func (c *class) keepsFrom(n *namespaceClaim) bool {
	return n != nil && c.placed.Spread().Counts(n.claim.Labels, n.gangName())
}

// placeOf is where a server stands that the class could ever have, if the policy lets it; empty for any other.
func (c *class) placeOf(e *index.Entry) string {
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
	claim index.ClaimKey
	uid   string
	ended bool
	place string
}

// recounts says that a change alters how many of the claims that count some place has.
func (c *class) recounts(change index.Change, known func(namespace string, uid types.UID) *namespaceClaim) bool {
	before, after := c.holderOf(change.Before), c.holderOf(change.After)
	if before == after {
		return false
	}
	for _, h := range []holder{before, after} {
		if h.claim.Namespace == "" || h.claim.Namespace != c.namespace {
			continue
		}
		if n := known(h.claim.Namespace, types.UID(h.uid)); n == nil || c.keepsFrom(n) {
			return true
		}
	}
	return false
}

func (c *class) holderOf(e *index.Entry) holder {
	if e == nil || !e.State.Claimed {
		return holder{}
	}
	return holder{claim: e.Claim(), uid: e.Holder.UID, ended: e.Holder.Ended, place: c.placed.Spread().Place(e.Candidate().Facts())}
}

// respread has the next pass look at the claims of a namespace that keep apart from some of its claims, of which the server changed
// by our own hands. It says whether there are any.
func (p *pending) respread(namespace string, uids ...types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	those := make([]*namespaceClaim, 0, len(uids))
	for _, uid := range uids {
		n := p.all[namespace][uid]
		if n == nil {
			return p.classes.respreadIn(namespace)
		}
		those = append(those, n)
	}
	return p.classes.respreadIn(namespace, those...)
}
