// SPDX-License-Identifier: Apache-2.0

package why

import (
	"maps"
	"slices"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// Fleet is all servers, and the claims that hold one, at an instant. What it says does not change. It is for one goroutine at a time.
type Fleet struct {
	servers []server
	now     int64
	// census counts the servers for a policy.
	census  *selection.Census
	holders []holder
	// heldIn counts the servers that are written for a claim, by its namespace.
	heldIn map[string]claims.Held
	// own is the server of each claim that it keeps or that is reserved for it.
	own map[[2]string]string
}

func keyOf(c *v1alpha1.ServerClaim) [2]string { return [2]string{c.Namespace, c.Name} }

// facts are those of the servers by name.
func (f *Fleet) facts() map[string]*selection.Candidate {
	all := make(map[string]*selection.Candidate, len(f.servers))
	for i := range f.servers {
		all[f.servers[i].state.Name] = f.servers[i].facts
	}
	return all
}

// server is one server as claims see it.
type server struct {
	state    selection.ServerState
	facts    *selection.Candidate
	prepared *selection.PreparedCandidate
	// heldUp is the code that passes only when whoever runs the fleet acts.
	heldUp string
	// known: nothing more is to be found out of what the machine is made of.
	known bool
}

// counted is the server as it counts, for a claim of a namespace where one has it.
func (s *server) counted(namespace string) selection.Counted {
	return selection.Counted{Zone: s.facts.Zone, Rack: s.facts.Rack, Claimed: s.state.Claimed, Free: selection.Free(s.state), Namespace: namespace}
}

// holder is a claim that has a server.
type holder struct {
	namespace, name, gang string
	labels                map[string]string
	server                string
}

// FleetOf puts together what was read. The claims are those that the claim in question may have to keep away from: what is
// not among them does not count for a spread. Inventories that are missing leave hardware unknown.
func FleetOf(servers []v1alpha1.Server, inventories []policyv1alpha1.ServerInventory, all []v1alpha1.ServerClaim, now time.Time) *Fleet {
	hardware := make(map[string]policies.Hardware, len(inventories))
	for i := range inventories {
		hardware[inventories[i].Spec.SystemUUID] = policies.HardwareOf(&inventories[i])
	}
	f := &Fleet{servers: make([]server, len(servers)), now: now.Unix(), census: selection.NewCensus(), heldIn: map[string]claims.Held{},
		own: map[[2]string]string{}}
	named := make(map[[2]string]*v1alpha1.ServerClaim, len(all))
	for i := range all {
		named[keyOf(&all[i])] = &all[i]
	}
	for i := range servers {
		s := &servers[i]
		reported := hardware[s.Spec.SystemUUID]
		facts := policies.CandidateOf(s, reported)
		one := server{state: policies.ServerStateOf(s), facts: &facts, prepared: selection.NewCandidate(facts), heldUp: heldUpBy(s),
			known: reported.IsKnown(s)}
		f.servers[i] = one
		ref := s.Spec.ServerClaimRef
		if ref == nil {
			f.census.Add(one.counted(""))
			continue
		}
		f.census.Add(one.counted(ref.Namespace))
		held := f.heldIn[ref.Namespace]
		counts := policies.HeldOf(s)
		held.Servers, held.Orphaned = held.Servers+counts.Servers, held.Orphaned+counts.Orphaned
		f.heldIn[ref.Namespace] = held
		if c := named[[2]string{ref.Namespace, ref.Name}]; c != nil {
			if relation := policies.RelationOf(s, c); relation == policies.Holds || relation == policies.Adoptable {
				f.holders = append(f.holders, holderOf(c, s.Name))
			}
			if policies.Keeps(s, c) || policies.Reserved(s, c) {
				f.own[keyOf(c)] = s.Name
			}
		}
	}
	slices.SortFunc(f.servers, func(a, b server) int { return compareNames(a.state.Name, b.state.Name) })
	return f
}

func holderOf(c *v1alpha1.ServerClaim, server string) holder {
	h := holder{namespace: c.Namespace, name: c.Name, labels: c.Labels, server: server}
	if gang := policies.GangOf(c); gang != nil {
		h.gang = gang.Name
	}
	return h
}

// Bind is the fleet once a claim has a server.
func (f *Fleet) Bind(c *v1alpha1.ServerClaim, name string) *Fleet {
	return f.bindAll(map[string]*v1alpha1.ServerClaim{name: c})
}

// bindAll is the fleet once claims have the servers under whose names they stand.
func (f *Fleet) bindAll(claims map[string]*v1alpha1.ServerClaim) *Fleet {
	after := &Fleet{servers: slices.Clone(f.servers), now: f.now, census: f.census.Clone(), holders: slices.Clone(f.holders),
		heldIn: maps.Clone(f.heldIn), own: f.own}
	for i := range after.servers {
		s := &after.servers[i]
		if c := claims[s.state.Name]; c != nil && !s.state.Claimed {
			after.census.Remove(s.counted(""))
			s.state.Claimed = true
			after.census.Add(s.counted(c.Namespace))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		namespace := claims[name].Namespace
		held := after.heldIn[namespace]
		held.Servers++
		after.heldIn[namespace] = held
		after.holders = append(after.holders, holderOf(claims[name], name))
	}
	return after
}
