// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// grantTime is how long a grant counts that the stored object does not show: the write that was to record it failed.
const grantTime = time.Minute

// grant is an action that was allowed and is about to be recorded.
type grant struct {
	action policyv1alpha1.FleetAction
	at     time.Time
}

// census is every server as far as budgets and the breaker need it, kept up to date by the cache's events. It is safe for
// concurrent use.
type census struct {
	mu       sync.Mutex
	machines map[string]machine
	granted  map[string]grant
	// changed is called, without the lock, when a machine changed its state, or why something is withheld from it.
	changed func()
}

func newCensus(changed func()) *census {
	return &census{machines: map[string]machine{}, granted: map[string]grant{}, changed: changed}
}

// handler keeps the census in step with the cache.
func (c *census) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { c.see(o) },
		UpdateFunc: func(_, o any) { c.see(o) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if s, ok := o.(*v1alpha1.Server); ok {
				c.forget(s.Name)
			}
		},
	}
}

func (c *census) see(o any) {
	s, ok := o.(*v1alpha1.Server)
	if !ok {
		return
	}
	now := machineOf(s)
	c.mu.Lock()
	was, known := c.machines[s.Name]
	c.machines[s.Name] = now
	if g, ok := c.granted[s.Name]; ok && now.shows(g) {
		delete(c.granted, s.Name)
	}
	c.mu.Unlock()
	if !known || was.state != now.state || was.withheld != now.withheld || was.wiping != now.wiping {
		c.changed()
	}
}

func (c *census) forget(name string) {
	c.mu.Lock()
	delete(c.machines, name)
	delete(c.granted, name)
	c.mu.Unlock()
	c.changed()
}

// shows says that the stored object records what was granted.
func (m *machine) shows(g grant) bool {
	if g.action == policyv1alpha1.ActionWipe {
		return m.wiping
	}
	return !m.began[g.action].Before(g.at)
}

// assumed is every machine with what was granted and is not recorded yet. It is called with the lock held.
func (c *census) assumed(now time.Time) map[string]machine {
	if len(c.granted) == 0 {
		return c.machines
	}
	all := make(map[string]machine, len(c.machines))
	for name, m := range c.machines {
		all[name] = m
	}
	for name, g := range c.granted {
		if now.Sub(g.at) > grantTime {
			delete(c.granted, name)
			continue
		}
		m := all[name]
		m.wiping = m.wiping || g.action == policyv1alpha1.ActionWipe
		began := map[policyv1alpha1.FleetAction]time.Time{g.action: g.at}
		for action, at := range m.began {
			if action != g.action {
				began[action] = at
			}
		}
		m.began = began
		all[name] = m
	}
	return all
}

// withheld counts the machines from which something is withheld, by reason.
func (c *census) withheld() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := map[string]int{}
	for _, m := range c.machines {
		if m.withheld != "" {
			count[m.withheld]++
		}
	}
	return count
}
