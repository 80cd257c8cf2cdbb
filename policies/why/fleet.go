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
	holders []holder
}

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
	f := &Fleet{servers: make([]server, len(servers)), counts: selection.Fleet{
		Now: now.Unix(), Total: int64(len(servers)), TotalByZone: map[string]int64{}, TotalByRack: map[string]int64{},
		ClaimedByZone: map[string]int64{}, ClaimedByRack: map[string]int64{},
	}}
	named := make(map[[2]string]*v1alpha1.ServerClaim, len(claims))
	for i := range claims {
		named[[2]string{claims[i].Namespace, claims[i].Name}] = &claims[i]
	}
	for i := range servers {
		s := &servers[i]
		facts := policies.CandidateOf(s, hardware[s.Spec.SystemUUID])
		one := server{state: policies.ServerStateOf(s), facts: &facts, prepared: selection.NewCandidate(facts)}
		f.servers[i] = one
		add(f.counts.TotalByZone, facts.Zone)
		add(f.counts.TotalByRack, facts.Rack)
		if one.state.Claimed {
			f.claimed(&one)
		}
		if ref := s.Spec.ServerClaimRef; ref != nil && !v1alpha1.BindingEnded(s) {
			if c := named[[2]string{ref.Namespace, ref.Name}]; c != nil {
				f.holders = append(f.holders, holderOf(c, s.Name))
			}
		}
	}
	slices.SortFunc(f.servers, func(a, b server) int { return compareNames(a.state.Name, b.state.Name) })
	return f
}

// claimed counts one more server as claimed.
func (f *Fleet) claimed(s *server) {
	f.counts.Claimed++
	add(f.counts.ClaimedByZone, s.facts.Zone)
	add(f.counts.ClaimedByRack, s.facts.Rack)
}

func add(counts map[string]int64, place string) {
	if place != "" {
		counts[place]++
	}
}

func holderOf(c *v1alpha1.ServerClaim, server string) holder {
	h := holder{namespace: c.Namespace, name: c.Name, labels: c.Labels, server: server}
	if gang := policies.GangOf(c); gang != nil {
		h.gang = gang.Name
	}
	return h
}

// Len is the number of servers.
func (f *Fleet) Len() int { return len(f.servers) }

// Bind is the fleet once a claim has a server.
func (f *Fleet) Bind(c *v1alpha1.ServerClaim, name string) *Fleet {
	after := &Fleet{servers: slices.Clone(f.servers), counts: f.counts, holders: slices.Clone(f.holders)}
	after.counts.ClaimedByZone, after.counts.ClaimedByRack = maps.Clone(f.counts.ClaimedByZone), maps.Clone(f.counts.ClaimedByRack)
	for i := range after.servers {
		if s := &after.servers[i]; s.state.Name == name && !s.state.Claimed {
			s.state.Claimed = true
			after.claimed(s)
		}
	}
	after.holders = append(after.holders, holderOf(c, name))
	return after
}
