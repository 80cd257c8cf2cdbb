// SPDX-License-Identifier: Apache-2.0

package selection

import "maps"

// Census counts servers for Fleet, one by one. The scheduler and the explanations count by it. What it has given
// away does not change any more. It is for one goroutine at a time.
type Census struct {
	counts Fleet
	// given is a copy of counts that was given away; nil once they changed. changes is how often they did.
	given   *Fleet
	changes uint64
	spaces  map[string]*space
}

// Counted is a server as it counts.
type Counted struct {
	// Zone and Rack are empty if they are not known.
	Zone, Rack string
	// Claimed: a claim has it, one of Namespace, which is empty where that is not known. Free: the next claim could have it.
	Claimed, Free bool
	Namespace     string
}

// space is where the claims of one namespace have servers.
type space struct {
	byZone, byRack map[string]int64
	// given says that the maps were given away, and are copied before they change.
	given bool
}

// NewCensus counts no servers yet.
func NewCensus() *Census {
	return &Census{spaces: map[string]*space{}, counts: Fleet{
		TotalByZone: map[string]int64{}, TotalByRack: map[string]int64{},
		ClaimedByZone: map[string]int64{}, ClaimedByRack: map[string]int64{},
		FreeByZone: map[string]int64{}, FreeByRack: map[string]int64{},
	}}
}

// Add counts one more server.
func (c *Census) Add(s Counted) { c.count(s, 1) }

// Remove counts a server no more. It is to be given as it was added.
func (c *Census) Remove(s Counted) { c.count(s, -1) }

func (c *Census) count(s Counted, by int64) {
	c.given = nil
	c.changes++
	c.counts.Total += by
	addTo(c.counts.TotalByZone, s.Zone, by)
	addTo(c.counts.TotalByRack, s.Rack, by)
	switch {
	case s.Claimed:
		c.counts.Claimed += by
		addTo(c.counts.ClaimedByZone, s.Zone, by)
		addTo(c.counts.ClaimedByRack, s.Rack, by)
		c.countIn(s, by)
	case s.Free:
		addTo(c.counts.FreeByZone, s.Zone, by)
		addTo(c.counts.FreeByRack, s.Rack, by)
	}
}

// countIn counts a server that a claim has, for the claim's namespace.
func (c *Census) countIn(server Counted, by int64) {
	if server.Namespace == "" || server.Zone == "" && server.Rack == "" {
		return
	}
	s := c.spaces[server.Namespace]
	switch {
	case s == nil:
		s = &space{byZone: map[string]int64{}, byRack: map[string]int64{}}
		c.spaces[server.Namespace] = s
	case s.given:
		s = &space{byZone: maps.Clone(s.byZone), byRack: maps.Clone(s.byRack)}
		c.spaces[server.Namespace] = s
	}
	addTo(s.byZone, server.Zone, by)
	addTo(s.byRack, server.Rack, by)
	if len(s.byZone) == 0 && len(s.byRack) == 0 {
		delete(c.spaces, server.Namespace)
	}
}

func addTo(counts map[string]int64, place string, by int64) {
	if place == "" {
		return
	}
	if counts[place] += by; counts[place] == 0 {
		delete(counts, place)
	}
}

// Fleet are the counts at an instant, without those of a namespace. The maps are not to be changed.
func (c *Census) Fleet(now int64) Fleet {
	if c.given == nil {
		f := c.counts.copied()
		c.given = &f
	}
	f := *c.given
	f.Now = now
	return f
}

// copied has maps of its own.
func (f Fleet) copied() Fleet {
	f.TotalByZone, f.TotalByRack = maps.Clone(f.TotalByZone), maps.Clone(f.TotalByRack)
	f.ClaimedByZone, f.ClaimedByRack = maps.Clone(f.ClaimedByZone), maps.Clone(f.ClaimedByRack)
	f.FreeByZone, f.FreeByRack = maps.Clone(f.FreeByZone), maps.Clone(f.FreeByRack)
	return f
}

// FleetFor are the counts for a policy that judges a claim of a namespace. The maps are not to be changed.
func (c *Census) FleetFor(namespace string, now int64) Fleet {
	f := c.Fleet(now)
	if s := c.spaces[namespace]; s != nil {
		s.given = true
		f.NamespaceByZone, f.NamespaceByRack = s.byZone, s.byRack
	}
	return f
}

// Changes grows with every change of the counts.
func (c *Census) Changes() uint64 { return c.changes }

// Clone is a census of the same servers, which is counted on by itself.
func (c *Census) Clone() *Census {
	clone := &Census{counts: c.counts.copied(), changes: c.changes, spaces: make(map[string]*space, len(c.spaces))}
	for namespace, s := range c.spaces {
		s.given = true
		clone.spaces[namespace] = s
	}
	return clone
}
