// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/scheduler/informer"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/internal/uuids"
)

// counters knows every server as far as budgets and the breaker need it, kept up to date by the cache's events. It is safe for
// concurrent use. The zero value knows no server.
type counters struct {
	mu       sync.Mutex
	machines map[string]*machine
	// controlCounter counts the machines for the FleetControl that was asked about last; nil before the first question.
	controlCounter *controlCounter
	// erasing is until when the machine of each inventory counts as being erased.
	erasing map[string]time.Time
	// named are the servers of each machine, by its UUID in the spelling that sorts first.
	named map[string]map[string]bool
	// withheld counts the machines from which something is withheld, by reason.
	withheld map[string]int
	// clock is counted time; nil knows none. now is the wall clock; nil stands for time.Now.
	clock *counted.Clock
	now   func() time.Time
	// words are the last words of the wipes that run, by inventory.
	words map[string]word
	// changed is called, without the lock, when a machine changed its state, or why something is withheld from it.
	changed func()
}

// word is the last word of a wipe that runs: its time, by the clock of a registry, and when it was first seen here.
type word struct{ of, seen time.Time }

// follow keeps the counters in step with the servers and the inventories of a cache, and returns a function that says whether they have seen
// all of them.
func (c *counters) follow(ctx context.Context, from cache.Cache) (complete func() bool, err error) {
	servers, err := informer.Follow(ctx, from, c.see, func(s *v1alpha1.Server) { c.forget(s.Name) })
	if err != nil {
		return nil, err
	}
	inventories, err := informer.Follow(ctx, from,
		func(i *policyv1alpha1.ServerInventory) { c.hear(i.Name, c.erasingSeen(i)) },
		func(i *policyv1alpha1.ServerInventory) { c.unheard(i.Name) })
	return func() bool { return servers() && inventories() }, err
}

// erasingUntil is until when an inventory says that disks are being erased; zero where it does not. An agent that falls
// silent is given up at that moment, as everywhere.
func erasingUntil(i *policyv1alpha1.ServerInventory) time.Time {
	if i.Wipe == nil || i.Wipe.State != policyv1alpha1.WipeRunning {
		return time.Time{}
	}
	return i.Wipe.UpdatedAt.Add(policyv1alpha1.WipeSilence)
}

// unheard forgets an inventory that is gone.
func (c *counters) unheard(inventory string) {
	c.mu.Lock()
	delete(c.words, inventory)
	c.mu.Unlock()
	c.hear(inventory, time.Time{})
}

// erasingSeen is erasingUntil by the clock of this process, from when it first saw the last word of the wipe.
func (c *counters) erasingSeen(i *policyv1alpha1.ServerInventory) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if erasingUntil(i).IsZero() {
		delete(c.words, i.Name)
		return time.Time{}
	}
	if c.words == nil {
		c.words = map[string]word{}
	}
	if last, ok := c.words[i.Name]; !ok || !last.of.Equal(i.Wipe.UpdatedAt.Time) {
		now := time.Now
		if c.now != nil {
			now = c.now
		}
		c.words[i.Name] = word{i.Wipe.UpdatedAt.Time, now()}
	}
	return c.words[i.Name].seen.Add(policyv1alpha1.WipeSilence)
}

func (c *counters) see(s *v1alpha1.Server) {
	c.mu.Lock()
	was, now := c.machines[s.Name], machineOf(s)
	if was != nil {
		now.inherit(was)
	}
	now.erasing = c.erasingOf(now.uuid)
	c.put(s.Name, now)
	c.mu.Unlock()
	if was == nil || was.state != now.state || was.withheld != now.withheld || was.wiping() != now.wiping() {
		c.notify()
	}
}

func (c *counters) forget(name string) {
	c.mu.Lock()
	c.remove(name)
	c.mu.Unlock()
	c.notify()
}

// hear takes in until when the machine of an inventory counts as being erased.
func (c *counters) hear(inventory string, until time.Time) {
	c.mu.Lock()
	if c.erasing == nil {
		c.erasing = map[string]time.Time{}
	}
	if c.erasing[inventory] = until; until.IsZero() {
		delete(c.erasing, inventory)
	}
	changes := false
	for _, name := range slices.Collect(maps.Keys(c.named[spelled(inventory)])) { // put changes it
		now := *c.machines[name]
		was := now.wiping()
		now.erasing = c.erasingOf(now.uuid)
		changes = changes || was != now.wiping()
		c.put(name, &now)
	}
	c.mu.Unlock()
	if changes {
		c.notify()
	}
}

func (c *counters) notify() {
	if c.changed != nil {
		c.changed()
	}
}

// erasingOf is until when a machine counts as being erased, in whichever spelling its inventory is named.
func (c *counters) erasingOf(uuid string) time.Time {
	var until time.Time
	for _, name := range uuids.Spellings(uuid) {
		if at := c.erasing[name]; at.After(until) {
			until = at
		}
	}
	return until
}

// spelled is the spelling of a UUID under which named knows its servers; empty for none.
func spelled(uuid string) string {
	if all := uuids.Spellings(uuid); len(all) > 0 {
		return slices.Min(all)
	}
	return ""
}

// put replaces what is known of a machine. It is called with the lock held.
func (c *counters) put(name string, m *machine) {
	c.remove(name)
	if c.machines == nil {
		c.machines, c.named, c.withheld = map[string]*machine{}, map[string]map[string]bool{}, map[string]int{}
	}
	c.machines[name] = m
	if uuid := spelled(m.uuid); uuid != "" {
		if c.named[uuid] == nil {
			c.named[uuid] = map[string]bool{}
		}
		c.named[uuid][name] = true
	}
	if m.withheld != "" {
		c.withheld[m.withheld]++
	}
	if c.controlCounter != nil {
		c.controlCounter.enter(name, m)
	}
}

// remove is called with the lock held.
func (c *counters) remove(name string) {
	m := c.machines[name]
	if m == nil {
		return
	}
	delete(c.machines, name)
	if uuid := spelled(m.uuid); uuid != "" {
		delete(c.named[uuid], name)
		if len(c.named[uuid]) == 0 {
			delete(c.named, uuid)
		}
	}
	if m.withheld != "" {
		c.withheld[m.withheld]--
	}
	if c.controlCounter != nil {
		c.controlCounter.remove(name, m)
	}
}

// grant counts an action from now on, before the stored object shows it. It is called with the lock held.
func (c *counters) grant(s *v1alpha1.Server, action policyv1alpha1.FleetAction, now time.Time) {
	m := machineOf(s)
	if known := c.machines[s.Name]; known != nil {
		was := *known
		was.granted = maps.Clone(known.granted)
		m = &was
	}
	if action == policyv1alpha1.ActionWipe && m.preparing {
		return
	}
	m.allow(action, grant{at: now, before: m.began[action]})
	c.put(s.Name, m)
}

// counts is the controlCounter of a FleetControl. It is called with the lock held.
func (c *counters) counts(control *policyv1alpha1.FleetControl) *controlCounter {
	of := editionOf(control)
	of.counted = c.clock.Now() != 0
	if c.controlCounter == nil || c.controlCounter.of != of {
		c.controlCounter = newControlCounter(of, control.Spec.Budgets, control.Spec.Breaker, c.clock)
		for name, m := range c.machines {
			c.controlCounter.enter(name, m)
		}
	}
	return c.controlCounter
}

// withheldBy counts the machines from which something is withheld, by reason.
func (c *counters) withheldBy() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.withheld)
}
