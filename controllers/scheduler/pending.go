// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// pending is every open claim as it was seen last, by the watch or in the answer to our own write, and which of them the next
// cycle has to look at. It does no I/O and is safe for concurrent use.
type pending struct {
	mu      sync.Mutex
	claims  map[types.UID]*openClaim
	byName  map[claims.Key]types.UID
	classes equivalenceClasses
	// all is every claim by its namespace, also those that are not open.
	all map[string]map[types.UID]*namespaceClaim
	// ended are claims that were found gone before the watch told. What it tells of them until then is old.
	ended map[types.UID]bool
}

// pendingClaim is an open claim as one cycle looks at it.
type pendingClaim struct {
	claim *v1alpha1.ServerClaim
	// ask is the claim for the solver, with what the bundle grants it.
	ask   *claims.Claim
	class *equivalenceClass
	// offered says that the claim is looked at only because a server came up that could satisfy its class.
	offered bool
}

func before(a, b pendingClaim) int { return claims.Before(a.ask, b.ask) }

func uidOf(c *claims.Claim) types.UID { return types.UID(c.UID) }

// openClaim is one open claim and the moment at which this process saw it first.
type openClaim struct {
	pendingClaim
	since time.Time
	// due says that the next cycle looks at the claim whatever became of its class.
	due bool
	// refused is how the last cycle left the claim without a server; nil where it did not.
	refused *refused
}

// take returns the claims that are to be looked at, the first to be served first, and marks them as looked at: by priority,
// then age, then namespace and name.
func (p *pending) take(granted bundle.Priority, now time.Time) []pendingClaim {
	p.mu.Lock()
	var due []pendingClaim
	for _, w := range p.claims {
		offered := w.class != nil && w.class.offered
		if !w.due && !offered {
			continue
		}
		due = append(due, w.granted(granted, now))
		w.due = false
	}
	for _, c := range p.classes.byKey {
		c.offered = false
	}
	p.mu.Unlock()
	slices.SortFunc(due, before)
	return due
}

func (w *openClaim) granted(granted bundle.Priority, now time.Time) pendingClaim {
	a := w.pendingClaim
	a.ask, a.offered = policies.Grant(a.ask, granted, now), !w.due && w.refused != nil
	return a
}

func newPending() *pending {
	return &pending{claims: map[types.UID]*openClaim{}, byName: map[claims.Key]types.UID{}, classes: newEquivalenceClasses(),
		all: map[string]map[types.UID]*namespaceClaim{}, ended: map[types.UID]bool{}}
}

// saw takes in a claim from the watch. It says whether the change can matter to what the claim gets.
func (p *pending) saw(c *v1alpha1.ServerClaim, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, later := p.know(c)
	if !later {
		return false
	}
	before := p.claims[c.UID]
	if !policies.Open(c) {
		p.remove(c.UID)
		return p.stir(c.Namespace, was, p.all[c.Namespace][c.UID])
	}
	if before == nil {
		p.put(c, now).due = true
		p.stir(c.Namespace, was, p.all[c.Namespace][c.UID])
		return true
	}
	w := p.put(c, before.since)
	w.due = w.due || asksAnew(before.claim, c)
	stirred := p.stir(c.Namespace, was, p.all[c.Namespace][c.UID])
	return w.due || stirred
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
	if before == nil {
		return
	}
	if _, later := p.know(c); !later {
		return
	}
	if !policies.Open(c) {
		p.remove(c.UID)
		return
	}
	p.put(c, before.since)
}

// put replaces what is known of a claim.
func (p *pending) put(c *v1alpha1.ServerClaim, since time.Time) *openClaim {
	w := &openClaim{pendingClaim: pendingClaim{claim: c, ask: p.all[c.Namespace][c.UID].ask}, since: since}
	offered := false
	if before := p.claims[c.UID]; before != nil {
		w.due, w.refused = before.due, before.refused
		offered = before.class != nil && before.class.offered
		p.classes.leave(c.UID, before.class)
	}
	if w.ask.Invalid == "" {
		p.classes.join(c.UID, w)
		w.class.offered = w.class.offered || offered // a class that was the claim's alone was made anew
	}
	p.claims[c.UID] = w
	p.byName[claims.Key{Namespace: c.Namespace, Name: c.Name}] = c.UID
	return w
}

func (p *pending) remove(uid types.UID) {
	w := p.claims[uid]
	if w == nil {
		return
	}
	p.classes.leave(uid, w.class)
	delete(p.claims, uid)
	if key := (claims.Key{Namespace: w.claim.Namespace, Name: w.claim.Name}); p.byName[key] == uid {
		delete(p.byName, key)
	}
}

// gone forgets a claim. It says whether that can matter to what others get.
func (p *pending) gone(namespace string, uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.ended, uid)
	return p.forget(namespace, uid)
}

// foundGone is gone before the watch tells.
func (p *pending) foundGone(namespace string, uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[namespace][uid] == nil { // it has told
		return false
	}
	p.ended[uid] = true
	return p.forget(namespace, uid)
}

func (p *pending) forget(namespace string, uid types.UID) bool {
	was := p.all[namespace][uid]
	delete(p.all[namespace], uid)
	if len(p.all[namespace]) == 0 {
		delete(p.all, namespace)
	}
	p.remove(uid)
	return p.stir(namespace, was, nil)
}

func (p *pending) isOpen(uid types.UID) bool {
	c, _ := p.get(uid)
	return c != nil
}

// get returns an open claim and since when it is open; nil where the claim is not open.
func (p *pending) get(uid types.UID) (c *v1alpha1.ServerClaim, since time.Time) {
	p.change(uid, func(w *openClaim) { c, since = w.claim, w.since })
	return c, since
}

// wake has the next cycle look at a claim.
func (p *pending) wake(uid types.UID) { p.change(uid, func(w *openClaim) { w.due = true }) }

// refuse remembers how a claim was left without a server; nil where it was not.
func (p *pending) refuse(uid types.UID, r *refused) {
	p.change(uid, func(w *openClaim) { w.refused = r })
}

func (p *pending) change(uid types.UID, f func(*openClaim)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.claims[uid]; w != nil {
		f(w)
	}
}

// wakeAll has the next cycle look at every claim.
func (p *pending) wakeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.claims {
		w.due = true
	}
}

// concerned has the next cycle look at the claims that a change of a server concerns: those that it could satisfy now, those
// that name the server, and those that the server names. It says whether there are any.
func (p *pending) concerned(change index.Change) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := change.After != nil && p.classes.offer(change.After)
	found = p.respreadBy(change) || found
	wake := func(w *openClaim) {
		if w != nil && !isBoundBy(w.claim, change.After) {
			w.due, found = true, true
		}
	}
	found = p.roomCameUp(change) || found
	for _, e := range []*index.Entry{change.Before, change.After} {
		if e == nil {
			continue
		}
		wake(p.claims[p.byName[e.Claim()]])
		found = p.regained(change, e) || found
		for c := range p.classes.byServer[e.Name()] {
			for _, w := range c.members {
				wake(w)
			}
		}
	}
	return found
}

// roomCameUp has the next cycle look at the claims for which the quota of their namespace left no room, where a server no longer counts
// for it: they come before others that became due since. It says whether there are any.
func (p *pending) roomCameUp(change index.Change) bool {
	namespace := change.Before.CountsFor()
	if namespace == "" || namespace == change.After.CountsFor() {
		return false
	}
	found := false
	for uid := range p.all[namespace] {
		if w := p.claims[uid]; w != nil && w.refused != nil && w.refused.refusal.Reason == v1alpha1.ReasonQuotaExceeded {
			w.due, found = true, true
		}
	}
	return found
}

// isBoundBy says that a claim and a server name each other.
func isBoundBy(c *v1alpha1.ServerClaim, e *index.Entry) bool {
	return e != nil && c.Spec.ServerRef != nil && c.Spec.ServerRef.Name == e.Name() && policies.RelationOf(index.Server(e), c) == policies.Holds
}

// offered has the next cycle look at the claims that a server could satisfy, which this process gave back by itself. It says
// whether there are any.
func (p *pending) offered(e *index.Entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return e != nil && p.classes.offer(e)
}

// seen is a claim as it was seen last, open or not; nil where it is gone.
func (p *pending) seen(namespace string, uid types.UID) *v1alpha1.ServerClaim {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.all[namespace][uid]; n != nil {
		return n.claim
	}
	return nil
}

// refusals are the claims that were left without a server, in no order.
func (p *pending) refusals() []refused {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []refused
	for _, w := range p.claims {
		if w.refused != nil && !w.due {
			all = append(all, *w.refused)
		}
	}
	return all
}

// anyRefused says whether some claim was left without a server.
func (p *pending) anyRefused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.claims {
		if w.refused != nil {
			return true
		}
	}
	return false
}
