// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/maintenance"
)

// Planned is what would become of one maintenance that waits.
type Planned struct {
	Maintenance types.NamespacedName
	UID         types.UID
	Server      string
	// At is when it would be granted; zero where it would not within the horizon. Ends is when it is expected to end then.
	At, Ends time.Time
	// Window and Wave are those under which it would be granted; empty where none covers the server.
	Window, Wave string
	// Asks says that the holder of a claim would be asked or told first.
	Asks bool
	// Answer is that of the grant, or why it waits at the end of the horizon.
	Answer
	// Obstacles are everything that it waits for at the beginning, or at the end of the horizon where it is not granted.
	Obstacles []Obstacle
}

// maxSteps bounds a simulation.
const maxSteps = 10000

// Plan says when the maintenances that wait would be granted, the first at the beginning. It takes for granted that each lasts as long as
// expected, that holders approve as soon as they are asked, and that nothing else happens. What is overdue or failed stays. One without
// a UID exists in a file only, and counts as made now.
func Plan(s Snapshot, horizon time.Duration) []Planned {
	f := newFuture(s)
	f.meets()
	until := s.Now.Add(horizon)
	for range maxSteps {
		f.settle()
		next := f.next()
		if next.IsZero() || next.After(until) {
			break
		}
		f.Now = next
	}
	f.meets()
	return f.told()
}

// future is a snapshot that goes on.
type future struct {
	Snapshot
	planned map[types.UID]*Planned
	// last are the answers of the last decision.
	last []Grant
}

// meets notes everything that those wait for which are not granted.
func (f *future) meets() {
	for _, g := range decide(f.Snapshot, true) {
		if p := f.of(&g); p.At.IsZero() {
			p.Obstacles = g.Obstacles
		}
	}
}

// newFuture copies what the simulation changes.
func newFuture(s Snapshot) *future {
	f := &future{Snapshot: s, planned: map[types.UID]*Planned{}}
	if f.Policy == nil {
		f.Policy = maintenance.Default()
	}
	f.Maintenances = slices.Clone(s.Maintenances)
	for i := range f.Maintenances {
		if m := &f.Maintenances[i]; m.UID == "" { // one that exists in a file only: it would be made now
			m.UID, m.Created = types.UID("planned:"+m.String()), s.Now
		}
	}
	f.Servers = make(map[string]*Server, len(s.Servers))
	for name, of := range s.Servers {
		if of == nil {
			continue
		}
		server := *of
		if of.Claim != nil {
			claim := *of.Claim
			server.Claim = &claim
		}
		f.Servers[name] = &server
	}
	return f
}

// settle does what happens at one moment until nothing more does.
func (f *future) settle() {
	for range maxSteps {
		f.end()
		f.last = decide(f.Snapshot, false)
		changed := false
		index := make(map[types.UID]*Maintenance, len(f.Maintenances))
		for i := range f.Maintenances {
			index[f.Maintenances[i].UID] = &f.Maintenances[i]
		}
		for i := range f.last {
			changed = f.follow(&f.last[i], index[f.last[i].UID]) || changed
		}
		if !f.release() && !changed {
			return
		}
	}
}

// of is the plan of a maintenance.
func (f *future) of(g *Grant) *Planned {
	p := f.planned[g.UID]
	if p == nil {
		p = &Planned{Maintenance: g.Maintenance, UID: g.UID, Server: g.Server}
		f.planned[g.UID] = p
	}
	return p
}

// follow does what the answer to a maintenance leads to; false where that is nothing.
func (f *future) follow(g *Grant, m *Maintenance) bool {
	p := f.of(g)
	p.Answer, p.Asks = g.Answer, p.Asks || g.Asks
	server := f.Servers[g.Server]
	switch {
	case g.Granted:
		m.GrantedAt = f.Now
		p.At, p.Ends, p.Window, p.Wave = f.Now, f.ends(m), g.Window, g.Wave
		name := g.Maintenance
		server.Holder, server.HolderUID = &name, g.UID
	case g.Reason == v1alpha1.ReasonWaitsForApproval, g.Reason == v1alpha1.ReasonWaitsForDrain, g.Reason == v1alpha1.ReasonApprovalOlder:
		p.Asks = true
		m.Asked, m.AskedAt, server.Claim.Approved = server.Claim.UID, f.Now, true
	case g.Asks:
		m.Asked, m.AskedAt = server.Claim.UID, f.Now
	default:
		return false
	}
	return true
}

// ends is when a maintenance is expected to end.
func (f *future) ends(m *Maintenance) time.Time { return m.GrantedAt.Add(f.Policy.Takes(m.Expected)) }

// lasts says that a maintenance holds its server and ends as expected.
func (f *future) lasts(m *Maintenance) bool {
	of := f.Servers[m.Server]
	return of != nil && of.HolderUID == m.UID && m.UID != "" && !m.GrantedAt.IsZero() && !m.Failed && !m.Ends
}

// end ends what is expected to have ended at the moment.
func (f *future) end() {
	for i := range f.Maintenances {
		if m := &f.Maintenances[i]; f.lasts(m) && f.ends(m).Equal(f.Now) {
			m.Ends = true
		}
	}
}

// release gives back the servers of what ended and was not followed; false where there is none.
func (f *future) release() bool {
	before := len(f.Maintenances)
	f.Maintenances = slices.DeleteFunc(f.Maintenances, func(m Maintenance) bool {
		if of := f.Servers[m.Server]; m.Ends && of != nil && of.HolderUID == m.UID {
			of.Holder, of.HolderUID, of.Down, of.EndedAt = nil, "", false, f.Now
		}
		return m.Ends
	})
	return len(f.Maintenances) < before
}

// next is the next moment at which something happens; zero where there is none.
func (f *future) next() time.Time {
	var next time.Time
	take := func(at time.Time) {
		if at.After(f.Now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for i := range f.last {
		take(f.last[i].After)
	}
	for i := range f.Maintenances {
		if m := &f.Maintenances[i]; f.lasts(m) {
			take(f.ends(m))
		}
	}
	return next
}

// told is the plan in the order of the grants; what is never granted is last.
func (f *future) told() []Planned {
	list := make([]Planned, 0, len(f.planned))
	for _, p := range f.planned {
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b Planned) int {
		if a.At.IsZero() != b.At.IsZero() {
			return -a.At.Compare(b.At)
		}
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Maintenance.Namespace, b.Maintenance.Namespace),
			cmp.Compare(a.Maintenance.Name, b.Maintenance.Name), cmp.Compare(a.UID, b.UID))
	})
	return list
}
