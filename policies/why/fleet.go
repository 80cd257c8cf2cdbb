// SPDX-License-Identifier: Apache-2.0

package why

import (
	"maps"
	"slices"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// Fleet is all servers, and the claims that hold one, at an instant. It is immutable.
type Fleet struct {
	servers []server
	counts  selection.Fleet
	// spaces are the servers that claims of a namespace have, by place.
	spaces  map[string]space
	holders []holder
	// heldIn counts the servers that are written for a claim which has not ended, by its namespace.
	heldIn map[string]int
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

// space is where the claims of one namespace have servers.
type space struct{ byZone, byRack map[string]int64 }

// server is one server as claims see it.
type server struct {
	state    selection.ServerState
	facts    *selection.Candidate
	prepared *selection.PreparedCandidate
}

// holder is a claim that has a server.
type holder struct {
	namespace, name, gang string
	labels                map[string]string
	server                string
}

// FleetOf puts together what was read. The claims are those that the claim in question may have to keep away from: what is
// not among them does not count for a spread. Inventories that are missing leave hardware unknown.
func FleetOf(servers []v1alpha1.Server, inventories []policyv1alpha1.ServerInventory, claims []v1alpha1.ServerClaim, now time.Time) *Fleet {
	hardware := make(map[string]policies.Hardware, len(inventories))
	for i := range inventories {
		hardware[inventories[i].Spec.SystemUUID] = policies.HardwareOf(&inventories[i])
	}
	f := &Fleet{servers: make([]server, len(servers)), heldIn: map[string]int{}, counts: selection.Fleet{
		Now: now.Unix(), Total: int64(len(servers)), TotalByZone: map[string]int64{}, TotalByRack: map[string]int64{},
		ClaimedByZone: map[string]int64{}, ClaimedByRack: map[string]int64{}, FreeByZone: map[string]int64{}, FreeByRack: map[string]int64{},
	}, spaces: map[string]space{}, own: map[[2]string]string{}}
	named := make(map[[2]string]*v1alpha1.ServerClaim, len(claims))
	for i := range claims {
		named[keyOf(&claims[i])] = &claims[i]
	}
	for i := range servers {
		s := &servers[i]
		facts := policies.CandidateOf(s, hardware[s.Spec.SystemUUID])
		one := server{state: policies.ServerStateOf(s), facts: &facts, prepared: selection.NewCandidate(facts)}
		f.servers[i] = one
		add(f.counts.TotalByZone, facts.Zone)
		add(f.counts.TotalByRack, facts.Rack)
		f.free(&one, 1)
		ref := s.Spec.ServerClaimRef
		if ref == nil {
			continue
		}
		f.claimed(&one, ref.Namespace)
		if !v1alpha1.BindingEnded(s) {
			f.heldIn[ref.Namespace]++
		}
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

// free counts a server where it is free.
func (f *Fleet) free(s *server, by int64) {
	if !selection.Free(s.state) {
		return
	}
	addBy(f.counts.FreeByZone, s.facts.Zone, by)
	addBy(f.counts.FreeByRack, s.facts.Rack, by)
}

// countsFor are the counts that a policy sees for a claim of a namespace.
func (f *Fleet) countsFor(namespace string) selection.Fleet {
	counts, own := f.counts, f.spaces[namespace]
	counts.NamespaceByZone, counts.NamespaceByRack = own.byZone, own.byRack
	return counts
}

// claimed counts one more server as claimed, by a claim of a namespace.
func (f *Fleet) claimed(s *server, namespace string) {
	own, known := f.spaces[namespace]
	if !known {
		own = space{map[string]int64{}, map[string]int64{}}
		f.spaces[namespace] = own
	}
	add(own.byZone, s.facts.Zone)
	add(own.byRack, s.facts.Rack)
	f.counts.Claimed++
	add(f.counts.ClaimedByZone, s.facts.Zone)
	add(f.counts.ClaimedByRack, s.facts.Rack)
}

func add(counts map[string]int64, place string) { addBy(counts, place, 1) }

func addBy(counts map[string]int64, place string, by int64) {
	if place != "" {
		counts[place] += by
	}
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
	after := &Fleet{servers: slices.Clone(f.servers), counts: f.counts, spaces: maps.Clone(f.spaces), holders: slices.Clone(f.holders),
		heldIn: maps.Clone(f.heldIn), own: f.own}
	after.counts.ClaimedByZone, after.counts.ClaimedByRack = maps.Clone(f.counts.ClaimedByZone), maps.Clone(f.counts.ClaimedByRack)
	after.counts.FreeByZone, after.counts.FreeByRack = maps.Clone(f.counts.FreeByZone), maps.Clone(f.counts.FreeByRack)
	for _, c := range claims {
		if own, known := f.spaces[c.Namespace]; known {
			after.spaces[c.Namespace] = space{maps.Clone(own.byZone), maps.Clone(own.byRack)}
		}
	}
	for i := range after.servers {
		s := &after.servers[i]
		if c := claims[s.state.Name]; c != nil && !s.state.Claimed {
			after.free(s, -1)
			s.state.Claimed = true
			after.claimed(s, c.Namespace)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		after.heldIn[claims[name].Namespace]++
		after.holders = append(after.holders, holderOf(claims[name], name))
	}
	return after
}
