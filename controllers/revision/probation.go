// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rollout"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/lifecycle"
)

const (
	// placeKept is how long a server keeps the place that it took and does not show to have used: longer than a cache is behind.
	placeKept = time.Minute
	// patience is how long a canary waits for a server whose time does not count, such as one whose BMC does not answer.
	patience = 10 * time.Minute
	// passedFor is how long a server that is passed over is not looked at again: there may be many of them.
	passedFor = time.Minute
	// asksAgain is longer than it takes a server that found no place to ask again. One that does not is silent, gone, or wants none any more.
	asksAgain = 2 * time.Minute
	// worthTelling is how long a server may take to show how it fares before the canary's status names it.
	worthTelling = time.Minute
)

// Probation bounds how many servers are under a canary that have not shown yet how they fare, so that the canary is paused before it
// costs more. It belongs to the process that reconciles servers; one that begins takes every server under a canary for unshown until
// it has looked at it. It is safe for concurrent use.
type Probation struct {
	store *Store
	// servers reads from the cache.
	servers client.Reader
	now     func() time.Time

	mu       sync.Mutex
	canaries map[string]*probation
}

// probation is what is known of the servers of one canary.
type probation struct {
	*troubled
	// unshown are the servers that came under it, or are about to, and have not shown yet how they fare, by name: since when. passed
	// are those of them that were passed over: when.
	unshown, passed map[string]time.Time
	// refused is since when servers that asked found no place, and when the last of them asked; zero where the last that asked found one.
	refused struct{ since, last time.Time }
}

// NewProbation makes one for the canaries of a store.
func NewProbation(store *Store, servers client.Reader, now func() time.Time) *Probation {
	return &Probation{store: store, servers: servers, now: now, canaries: map[string]*probation{}}
}

// Admit says whether a server may come under a bundle now. Where that governs as a canary it takes one of its places for the server;
// called again before Saw it takes no further one.
func (p *Probation) Admit(server *v1alpha1.Server, b *bundle.Bundle) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.store.rule.Load() // with the lock held: an older one would end canaries that have begun since
	if b.Revision.Name == r.active.Revision.Name {
		return true
	}
	p.follow(r)
	c, at := p.canaries[b.Revision.Name], r.canary(b.Revision.Name)
	if c == nil || at == nil {
		return false // it governs nobody any more, or its servers cannot be listed
	}
	if since, took := c.unshown[server.Name]; took && p.now().Sub(since) < placeKept {
		return true
	}
	c.forget(server.Name)
	budget := rollout.Troubles{Halts: int32(b.Settings.Canary.MaxHalts), Errors: int32(b.Settings.Canary.MaxErrors)}
	cost := rollout.Troubles{Halts: max(at.cost.Halts, int32(len(c.halted))), Errors: max(at.cost.Errors, int32(len(c.failed)))}
	if p.waits(c, b, rollout.Places(budget, cost, 0)) {
		c.refuse(p.now())
		return false
	}
	c.refused.since = time.Time{}
	c.unshown[server.Name] = p.now()
	return true
}

// Saw takes in a server as it is stored after a look at it, and whether the look had word of the machine and left it at rest.
func (p *Probation) Saw(server *v1alpha1.Server, rests bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follow(p.store.rule.Load())
	for name, c := range p.canaries {
		c.see(name, server)
		l := server.Status.Lifecycle
		if under := l != nil && l.Revision == name; !under || rests || c.has(server.UID) || isHalted(server) {
			c.forget(server.Name)
		}
	}
}

// Awaited names, for each canary that has no place for a server which asks, those that have not shown for a while how they fare, and for
// which it waits.
func (p *Probation) Awaited() map[string][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string][]string{}
	for canary, c := range p.canaries {
		if !c.refuses(p.now()) {
			continue
		}
		for name, since := range c.unshown {
			if _, over := c.passed[name]; !over && p.now().Sub(since) >= worthTelling {
				all[canary] = append(all[canary], name)
			}
		}
		slices.Sort(all[canary])
	}
	return all
}

// Waits says for how long each canary has had no place for servers that ask.
func (p *Probation) Waits() map[string]time.Duration {
	all := map[string]time.Duration{}
	p.mu.Lock()
	defer p.mu.Unlock()
	for canary, c := range p.canaries {
		if c.refuses(p.now()) {
			all[canary] = p.now().Sub(c.refused.since)
		}
	}
	return all
}

// follow begins and ends with the canaries that govern. One that begins in another scope begins to count anew.
func (p *Probation) follow(r *rule) {
	for name := range p.canaries {
		if r.canary(name) == nil {
			delete(p.canaries, name)
		}
	}
	for i := range r.canaries {
		at := &r.canaries[i]
		name := at.bundle.Revision.Name
		if c := p.canaries[name]; c == nil {
			p.begin(name, at.since)
		} else if !c.since.Equal(at.since) {
			c.troubled = newTroubled(at.since)
		}
	}
}

// begin finds who is under a canary already. What cannot be listed is listed at the next call.
func (p *Probation) begin(name string, since time.Time) {
	var list v1alpha1.ServerList
	if err := p.servers.List(context.Background(), &list, client.UnsafeDisableDeepCopy); err != nil {
		logf.Log.WithName("revision").Error(err, "no server comes under a canary before it is known who is under it", "revision", name)
		return
	}
	c := &probation{troubled: newTroubled(since), unshown: map[string]time.Time{}, passed: map[string]time.Time{}}
	for i := range list.Items {
		s := &list.Items[i]
		c.see(name, s)
		if l := s.Status.Lifecycle; l != nil && l.Revision == name && !c.has(s.UID) && !isHalted(s) {
			c.unshown[s.Name] = p.now()
		}
	}
	p.canaries[name] = c
}

// waits says that at least so many servers are to show first how they fare.
func (p *Probation) waits(c *probation, b *bundle.Bundle, places int32) bool {
	for name, since := range c.unshown {
		if places < 1 {
			break
		}
		if at, is := c.passed[name]; is && p.now().Sub(at) < passedFor {
			continue
		}
		if p.takesPlace(c, b, name, since) {
			places--
		}
	}
	return places < 1
}

// takesPlace says whether a server takes a place, as it is by now. It forgets one of which nothing is to be seen any more, and notes one that
// is passed over until its time counts again.
func (p *Probation) takesPlace(c *probation, b *bundle.Bundle, name string, since time.Time) bool {
	delete(c.passed, name)
	s := &v1alpha1.Server{}
	err := p.servers.Get(context.Background(), types.NamespacedName{Name: name}, s)
	under := err == nil && s.Status.Lifecycle != nil && s.Status.Lifecycle.Revision == b.Revision.Name
	switch {
	case apierrors.IsNotFound(err), err == nil && !under && p.now().Sub(since) >= placeKept:
		c.forget(name)
		return false
	case under && isHalted(s): // which is how it fares, since whenever; one that was not counted before is a part of the cost from now on
		c.see(b.Revision.Name, s)
		c.forget(name)
		return c.has(s.UID)
	case err == nil && (!s.DeletionTimestamp.IsZero() || v1alpha1.Ignored(s)), under && p.stuckFor(s, b.Lifecycle, since) >= patience:
		c.passed[name] = p.now()
		return false
	}
	return true
}

// refuse notes that a server which asked found no place.
func (c *probation) refuse(now time.Time) {
	if !c.refuses(now) {
		c.refused.since = now
	}
	c.refused.last = now
}

// refuses says that a server found no place that may well ask still.
func (c *probation) refuses(now time.Time) bool {
	return !c.refused.since.IsZero() && now.Sub(c.refused.last) < asksAgain
}

// forget ends what is known of a server that has shown how it fares, or has nothing to show.
func (c *probation) forget(server string) {
	delete(c.unshown, server)
	delete(c.passed, server)
}

// isHalted says that the server is halted by what governs it.
func isHalted(s *v1alpha1.Server) bool {
	return meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.ConditionPolicyHalted)
}

// stuckFor is how long nothing has told when a server goes on that came under a canary some time ago. One on its way does so by its
// deadline, unless that is held; and what a freeze or a budget holds back goes on when that ends.
func (p *Probation) stuckFor(s *v1alpha1.Server, l *lifecycle.Lifecycle, since time.Time) time.Duration {
	switch clock := s.Status.Lifecycle.Clock; {
	case l.Stable(engine.State(s.Status.State)):
	case clock == nil, !clock.Held, clock.Reason == v1alpha1.ConditionWithheld:
		return 0
	case clock.AsOf.After(since):
		since = clock.AsOf.Time
	}
	return p.now().Sub(since)
}
