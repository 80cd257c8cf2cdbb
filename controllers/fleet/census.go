// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// grantTime is how long a grant counts that the stored object does not show: the write that was to record it failed.
const grantTime = time.Minute

// grants are the actions that were allowed to a machine and are about to be recorded, and when they were.
type grants map[policyv1alpha1.FleetAction]time.Time

// census is every server as far as budgets and the breaker need it, kept up to date by the cache's events. It is safe for
// concurrent use.
type census struct {
	mu       sync.Mutex
	machines map[string]machine
	granted  map[string]grants
	// changed is called, without the lock, when a machine changed its state, or why something is withheld from it.
	changed func()
}

func newCensus(changed func()) *census {
	return &census{machines: map[string]machine{}, granted: map[string]grants{}, changed: changed}
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
	now.recall(&was)
	c.machines[s.Name] = now
	for action, at := range c.granted[s.Name] {
		if now.shows(action, at) {
			delete(c.granted[s.Name], action)
		}
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

// grant counts an action from now on. It is called with the lock held.
func (c *census) grant(name string, action policyv1alpha1.FleetAction, now time.Time) {
	m := c.machines[name]
	if m.shows(action, now) {
		return
	}
	if c.granted[name] == nil {
		c.granted[name] = grants{}
	}
	c.granted[name][action] = now
}

// shows says that the stored object records what was granted.
func (m *machine) shows(action policyv1alpha1.FleetAction, at time.Time) bool {
	if action == policyv1alpha1.ActionWipe {
		return m.wiping
	}
	return !m.began[action].Before(at)
}

// assumed is every machine with what was granted and is not recorded yet. It is called with the lock held.
func (c *census) assumed(now time.Time) map[string]machine {
	if len(c.granted) == 0 {
		return c.machines
	}
	all := maps.Clone(c.machines)
	for name, granted := range c.granted {
		maps.DeleteFunc(granted, func(_ policyv1alpha1.FleetAction, at time.Time) bool { return now.Sub(at) > grantTime })
		if len(granted) == 0 {
			delete(c.granted, name)
			continue
		}
		m := all[name]
		m.began = maps.Clone(m.began)
		for action, at := range granted {
			m.wiping = m.wiping || action == policyv1alpha1.ActionWipe
			m.begin(action, at)
		}
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
