// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// neighbour is a claim, open or not, as others of its namespace have to do with it: they keep apart from it, or are of its gang.
type neighbour struct {
	claim *v1alpha1.ServerClaim
	gang  *placement.Gang
}

// gangKey names a gang.
type gangKey struct{ namespace, name string }

// musters says that the claim counts as a member of its gang: it has a server, or can be given one.
func (n *neighbour) musters() bool {
	return n != nil && n.gang != nil && policies.Musters(n.claim)
}

// gangName is empty where the claim is of no gang.
func (n *neighbour) gangName() string {
	if n.gang == nil {
		return ""
	}
	return n.gang.Name
}

// placementOf compiles a claim's placement. The message says why that cannot be done.
func placementOf(c *v1alpha1.ServerClaim) (*placement.Placement, string) {
	p, found := policies.PlacementOf(c)
	for _, f := range found {
		if f.Severity == diag.Error {
			return nil, f.String()
		}
	}
	return p, ""
}

// know remembers a version of a claim, and returns the one before; later is false, and nothing changes, where a version that is as late
// is known already. That of a claim which is not open counts too, or an older one would open the claim again.
func (p *pending) know(c *v1alpha1.ServerClaim) (before *neighbour, later bool) {
	if p.ended[c.UID] {
		return nil, false
	}
	all := p.known[c.Namespace]
	if all == nil {
		all = map[types.UID]*neighbour{}
		p.known[c.Namespace] = all
	}
	before = all[c.UID]
	if before != nil && !index.Newer(c.ResourceVersion, before.claim.ResourceVersion) {
		return before, false
	}
	all[c.UID] = &neighbour{claim: c, gang: policies.GangOf(c)}
	return before, true
}

// named says that a claim is known to name a server by now, which the given version of it does not.
func (p *pending) named(c *v1alpha1.ServerClaim) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.known[c.Namespace][c.UID]
	return n != nil && n.claim.Spec.ServerRef != nil && c.Spec.ServerRef == nil
}

// stir has the next pass look at the claims to which another one matters: those of its gang, and those that keep apart from it. It
// says whether there are any. Both versions may be nil.
func (p *pending) stir(namespace string, before, after *neighbour) bool {
	found := false
	if !sameMember(before, after) {
		found = true // servers may be kept for the gang
		for _, n := range []*neighbour{before, after} {
			if n != nil && n.gang != nil {
				found = p.stirGang(gangKey{namespace, n.gang.Name}) || found
			}
		}
	}
	if before != nil && after != nil && maps.Equal(before.claim.Labels, after.claim.Labels) && before.gangName() == after.gangName() {
		return found
	}
	if before == nil && (after == nil || after.claim.Spec.ServerRef == nil) { // it holds nothing
		return found
	}
	return p.classes.respreadIn(namespace, before, after) || found
}

// regained has the next pass look at a gang where the member that a server is written for, in one of two versions, lost or got back
// the server that it names. It says whether there are any. A member that has its server is not looked at for its own sake, but as
// long as it has none the others wait.
func (p *pending) regained(change index.Change, e *index.Entry) bool {
	n := p.known[e.Claim().Namespace][types.UID(index.Server(e).Annotations[v1alpha1.ClaimUIDAnnotation])]
	if n == nil || n.gang == nil || n.keeps(change.Before) == n.keeps(change.After) {
		return false
	}
	return p.stirGang(gangKey{n.claim.Namespace, n.gang.Name})
}

// keeps says that a server is the one that the claim names, and is written for it.
func (n *neighbour) keeps(e *index.Entry) bool {
	return e != nil && policies.Keeps(index.Server(e), n.claim)
}

func sameMember(a, b *neighbour) bool {
	if a.musters() != b.musters() {
		return false
	}
	return !a.musters() || *a.gang == *b.gang && (a.claim.Spec.ServerRef == nil) == (b.claim.Spec.ServerRef == nil)
}

// wakeGang has the next pass look at the members of a gang that are open. It says whether there are any.
func (p *pending) wakeGang(key gangKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stirGang(key)
}

// stirGang is wakeGang for who holds mu.
func (p *pending) stirGang(key gangKey) bool {
	found := false
	for uid, n := range p.known[key.namespace] {
		if w := p.claims[uid]; w != nil && n.gangName() == key.name {
			w.due, found = true, true
		}
	}
	return found
}

// inGang says whether any member of a gang is open.
func (p *pending) inGang(key gangKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, n := range p.known[key.namespace] {
		if p.claims[uid] != nil && n.gangName() == key.name {
			return true
		}
	}
	return false
}

// isSpread says whether any open member of a gang keeps apart from other claims.
func (p *pending) isSpread(key gangKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, n := range p.known[key.namespace] {
		if w := p.claims[uid]; w != nil && n.gangName() == key.name && w.placed.Spread() != nil {
			return true
		}
	}
	return false
}

// roster is who counts as a member of a gang, in no order, and those of them that are open as a pass looks at them.
func (p *pending) roster(key gangKey, granted bundle.Priority, now time.Time) (members []*neighbour, open map[types.UID]asking) {
	p.mu.Lock()
	defer p.mu.Unlock()
	open = map[types.UID]asking{}
	for uid, n := range p.known[key.namespace] {
		if !n.musters() || n.gang.Name != key.name {
			continue
		}
		members = append(members, n)
		if w := p.claims[uid]; w != nil {
			open[uid] = w.asking(granted, now)
			w.due = false
		}
	}
	return members, open
}

// firstOf is the member of a gang that is served first; false where none is open.
func (p *pending) firstOf(key gangKey, granted bundle.Priority, now time.Time) (first asking, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, n := range p.known[key.namespace] {
		w := p.claims[uid]
		if w == nil || n.gangName() != key.name {
			continue
		}
		if a := w.asking(granted, now); !ok || before(a, first) < 0 {
			first, ok = a, true
		}
	}
	return first, ok
}

// anyDue says whether the next pass has to look at any claim.
func (p *pending) anyDue() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.claims {
		if w.due || w.class != nil && w.class.offered {
			return true
		}
	}
	return false
}

// neighbours are the claims of a namespace.
func (p *pending) neighbours(namespace string) []*neighbour {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*neighbour, 0, len(p.known[namespace]))
	for _, n := range p.known[namespace] {
		all = append(all, n)
	}
	return all
}
