// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/maintenance"
)

// Decide answers every maintenance that waits, the one that goes first at the beginning. Its grants hold together: no server is granted
// twice, and no limit is passed once all are carried out.
func Decide(s Snapshot) []Grant { return decide(s, true) }

// decide answers every maintenance that waits; whole says with everything that it waits for.
func decide(s Snapshot, whole bool) []Grant {
	x := newPass(&s)
	x.whole = whole
	grants := make([]Grant, 0, len(x.queue))
	for _, c := range x.queue {
		if !c.done {
			x.grant(x.unit(c))
		}
		grants = append(grants, c.grant)
	}
	return grants
}

// pass is one decision over a snapshot.
type pass struct {
	*Snapshot
	policy  *maintenance.Policy
	clock   *maintenance.Clock
	servers map[string]*server
	bounds  []bound
	waves   []wave
	groups  map[string]*group
	stopped Answer
	// whole says that each obstacle is named, and not the first alone.
	whole bool
	// queue are the maintenances that wait, in the order in which they are granted.
	queue []*candidate
	// facts are those of the candidate that is judged.
	facts maintenance.Facts
}

// server is a Server with what was found out about it.
type server struct {
	*Server
	name string
	// holder is the maintenance of ours that holds it; nil where it is not in the snapshot.
	holder *Maintenance
	// head is the one that goes first of those that wait for it.
	head *candidate
	// shares are its places in the bounds.
	shares []*share
	wave   int
}

// candidate is a maintenance that waits.
type candidate struct {
	*Maintenance
	on    *server
	group *group
	grant Grant
	done  bool
	// closes is when the window closes under which it is granted; zero where it does not.
	closes time.Time
}

// group is maintenances that are granted together.
type group struct {
	waits []*candidate
	// first is the member that goes before the others. It gives all of them their place in the order.
	first *Maintenance
	// broken says why the group can never be granted as it is; empty where it can.
	broken string
}

func newPass(s *Snapshot) *pass {
	x := &pass{Snapshot: s, policy: s.Policy, servers: make(map[string]*server, len(s.Servers))}
	if x.policy == nil {
		x.policy = maintenance.Default()
	}
	x.clock = x.policy.Clock(s.Now)
	list := make([]server, 0, len(s.Servers))
	for name, of := range s.Servers {
		if of == nil {
			continue
		}
		list = append(list, server{Server: of, name: name, wave: x.policy.Wave(of.Labels)})
		x.servers[name] = &list[len(list)-1]
	}
	for i := range s.Maintenances {
		if m := &s.Maintenances[i]; x.holds(m) {
			x.servers[m.Server].holder = m
		}
	}
	x.enqueue()
	x.lineUp()
	x.countBounds(list)
	x.countWaves(list)
	x.stopped = x.stop()
	return x
}

// holds says that we granted the maintenance its server.
func (x *pass) holds(m *Maintenance) bool {
	of := x.Servers[m.Server]
	return of != nil && of.Holder != nil && of.HolderUID == m.UID && m.UID != ""
}

// enqueue collects those that wait, and the groups.
func (x *pass) enqueue() {
	list := make([]candidate, 0, len(x.Maintenances))
	x.queue = make([]*candidate, 0, len(x.Maintenances))
	for i := range x.Maintenances {
		m := &x.Maintenances[i]
		if m.Ends {
			continue
		}
		holds := x.holds(m)
		of := x.group(m, holds)
		if holds || m.Failed {
			continue
		}
		list = append(list, candidate{Maintenance: m, on: x.servers[m.Server], group: of,
			grant: Grant{Maintenance: m.NamespacedName, UID: m.UID, Server: m.Server}})
		c := &list[len(list)-1]
		x.queue = append(x.queue, c)
		if of != nil {
			of.waits = append(of.waits, c)
		}
	}
	slices.SortFunc(x.queue, func(a, b *candidate) int { return inQueue(a.Maintenance, b.Maintenance) })
	for _, of := range x.groups {
		of.finish()
	}
}

// group enters a maintenance into its group.
func (x *pass) group(m *Maintenance, holds bool) *group {
	if m.Group == "" {
		return nil
	}
	if x.groups == nil {
		x.groups = map[string]*group{}
	}
	g := x.groups[m.Group]
	if g == nil {
		g = &group{}
		x.groups[m.Group] = g
	}
	if g.first == nil || onServer(m, g.first) < 0 {
		g.first = m
	}
	switch {
	case m.Failed && !holds:
		g.breaks(m.NamespacedName, "failed")
	case m.Refused.Reason != "":
		g.breaks(m.NamespacedName, "may not be granted: "+m.Refused.Reason)
	case x.servers[m.Server] == nil:
		g.breaks(m.NamespacedName, "names a server that does not exist")
	}
	return g
}

// breaks records the first reason, by the name of the member, for which a group cannot be granted.
func (g *group) breaks(member types.NamespacedName, why string) {
	if text := member.String() + " " + why; g.broken == "" || text < g.broken {
		g.broken = text
	}
}

// finish puts the members into their order, and finds two of one server, which can never be granted together.
func (g *group) finish() {
	slices.SortFunc(g.waits, func(a, b *candidate) int { return inQueue(a.Maintenance, b.Maintenance) })
	seen := make(map[string]bool, len(g.waits))
	for _, c := range g.waits {
		if seen[c.Server] {
			g.breaks(c.NamespacedName, "is the second for server "+c.Server)
		}
		seen[c.Server] = true
	}
}

// lineUp finds out who goes first on each server. What cannot be granted whatever happens is never ahead of others.
func (x *pass) lineUp() {
	for _, c := range x.queue {
		if c.on == nil || c.Refused.Reason != "" || (c.group != nil && c.group.broken != "") {
			continue
		}
		if c.on.head == nil || onServer(c.place(), c.on.head.place()) < 0 {
			c.on.head = c
		}
	}
}

// place is the maintenance by which a candidate is ordered on its server: a group has the same place everywhere, so that two groups
// never wait for each other.
func (c *candidate) place() *Maintenance {
	if c.group != nil {
		return c.group.first
	}
	return c.Maintenance
}

// unit is what is granted together with a candidate.
func (x *pass) unit(c *candidate) []*candidate {
	if c.group == nil || c.group.broken != "" {
		return []*candidate{c}
	}
	return c.group.waits
}

// grant judges candidates that are granted all together or not at all.
func (x *pass) grant(unit []*candidate) {
	var waits *candidate
	for _, c := range unit {
		c.done = true
		x.judge(c)
		if c.grant.Granted {
			x.take(c.on, 1)
		} else if waits == nil {
			waits = c
		}
	}
	if waits == nil {
		return
	}
	for _, c := range unit {
		if c.grant.Granted {
			x.take(c.on, -1)
			c.wait(answer(v1alpha1.ReasonGroupWaits, "Group %s waits for %s: %s.", c.Group, waits, waits.grant.Reason), waits.grant.After)
		}
	}
}

// wait takes a grant back, or never gives it.
func (c *candidate) wait(why Answer, after time.Time) {
	c.grant.Granted, c.grant.Follows, c.grant.Window, c.grant.Wave, c.grant.Claim = false, "", "", "", ""
	c.grant.Answer, c.grant.After, c.grant.Obstacles = why, after, []Obstacle{{Answer: why}}
}
