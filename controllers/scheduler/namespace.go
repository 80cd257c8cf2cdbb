// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// namespaceClaim is a claim, open or not, as it matters to others of its namespace: it counts for their spread, or is of their gang.
type namespaceClaim struct {
	claim *v1alpha1.ServerClaim
	ask   *claims.Claim
}

// gangKey names a gang.
type gangKey struct{ namespace, name string }

// isMember says that the claim counts as a member of its gang: it has a server, or can be given one.
func (n *namespaceClaim) isMember() bool { return n != nil && n.ask.CountsAsMember() }

// know remembers a version of a claim, and returns the one before; later is false, and nothing changes, where a version that is as late
// is known already. That of a claim which is not open counts too, or an older one would open the claim again.
func (p *pending) know(c *v1alpha1.ServerClaim) (before *namespaceClaim, later bool) {
	if p.ended[c.UID] {
		return nil, false
	}
	all := p.all[c.Namespace]
	if all == nil {
		all = map[types.UID]*namespaceClaim{}
		p.all[c.Namespace] = all
	}
	before = all[c.UID]
	if before != nil && !index.Newer(c.ResourceVersion, before.claim.ResourceVersion) {
		return before, false
	}
	all[c.UID] = &namespaceClaim{claim: c, ask: policies.ClaimOf(c, bundle.Priority{}, time.Time{})}
	return before, true
}

// named says that a claim is known to name a server by now, which the given version of it does not.
func (p *pending) named(c *v1alpha1.ServerClaim) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.all[c.Namespace][c.UID]
	return n != nil && n.claim.Spec.ServerRef != nil && c.Spec.ServerRef == nil
}

// stir has the next cycle look at the claims to which another one matters: those of its gang, and those for whose spread it counts. It
// says whether there are any. Both versions may be nil.
func (p *pending) stir(namespace string, before, after *namespaceClaim) bool {
	found := false
	if !sameMember(before, after) {
		for _, n := range []*namespaceClaim{before, after} {
			if n != nil && n.ask.Gang() != nil {
				found = p.stirGang(gangKey{namespace, n.ask.GangName()}) || found
			}
		}
	}
	if before != nil && after != nil && maps.Equal(before.claim.Labels, after.claim.Labels) && before.ask.GangName() == after.ask.GangName() {
		return found
	}
	if before == nil && (after == nil || after.claim.Spec.ServerRef == nil) { // it has no server
		return found
	}
	return p.classes.respreadIn(namespace, before, after) || found
}

// regained has the next cycle look at a gang where the member that a server is written for, in one of two versions, lost or got back
// the server that it names. It says whether there are any. A member that has its server is not looked at for its own sake, but as
// long as it has none the others wait.
func (p *pending) regained(change index.Change, e *index.Entry) bool {
	n := p.all[e.Claim().Namespace][types.UID(index.Server(e).Annotations[v1alpha1.ClaimUIDAnnotation])]
	if n == nil || n.ask.Gang() == nil || n.keeps(change.Before) == n.keeps(change.After) {
		return false
	}
	return p.stirGang(gangKey{n.claim.Namespace, n.ask.GangName()})
}

// keeps says that a server is the one that the claim names, and is written for it.
func (n *namespaceClaim) keeps(e *index.Entry) bool {
	return e != nil && n.ask.ServerRef == e.Name() && e.Holder.Has(e.Name(), n.ask)
}

func sameMember(a, b *namespaceClaim) bool {
	if a.isMember() != b.isMember() {
		return false
	}
	return !a.isMember() || *a.ask.Gang() == *b.ask.Gang() && (a.claim.Spec.ServerRef == nil) == (b.claim.Spec.ServerRef == nil)
}

// wakeGang has the next cycle look at the members of a gang that are open. It says whether there are any.
func (p *pending) wakeGang(key gangKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stirGang(key)
}

// stirGang is wakeGang for a caller that has locked mu.
func (p *pending) stirGang(key gangKey) bool {
	found := false
	for uid, n := range p.all[key.namespace] {
		if w := p.claims[uid]; w != nil && n.ask.GangName() == key.name {
			w.due, found = true, true
		}
	}
	return found
}

// members are the claims that count as members of a gang, in no order, and those of them that are open as a cycle looks at them.
func (p *pending) members(key gangKey, granted bundle.Priority, now time.Time) (all []*namespaceClaim, open map[types.UID]pendingClaim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	open = map[types.UID]pendingClaim{}
	for uid, n := range p.all[key.namespace] {
		if !n.isMember() || n.ask.GangName() != key.name {
			continue
		}
		all = append(all, n)
		if w := p.claims[uid]; w != nil {
			open[uid] = w.granted(granted, now)
			w.due = false
		}
	}
	return all, open
}

// claimsIn are the claims of a namespace.
func (p *pending) claimsIn(namespace string) []*claims.Claim {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*claims.Claim, 0, len(p.all[namespace]))
	for _, n := range p.all[namespace] {
		all = append(all, n.ask)
	}
	return all
}
