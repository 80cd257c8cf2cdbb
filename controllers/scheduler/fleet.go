// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// fleet is every server as it was seen last: by the watch, or in the answer to our own write. An older version never
// replaces a newer one, so that a binding that we wrote holds here at once and a watch that lags does not undo it.
// It does no I/O and is safe for concurrent use.
type fleet struct {
	mu       sync.RWMutex
	servers  map[string]*entry
	byUUID   map[string]string            // server name by system UUID
	hardware map[string]policies.Hardware // by system UUID
	// free holds the servers that are Available and without a claim; held those with a claim, by claim.
	free map[string]*entry
	held map[claimKey]map[string]*entry
	// counts are kept up to date with each change; Now is not set.
	counts selection.Fleet
}

// claimKey names a claim, by whatever UID.
type claimKey struct{ namespace, name string }

// entry is one version of a server. It is immutable, and so is the server, which the cache shares.
type entry struct {
	server *v1alpha1.Server
	state  selection.ServerState
	zone   string
	rack   string
	// prepare makes the facts for the policy, once.
	prepare func() *selection.PreparedCandidate
}

func newFleet() *fleet {
	return &fleet{
		servers:  map[string]*entry{},
		byUUID:   map[string]string{},
		hardware: map[string]policies.Hardware{},
		free:     map[string]*entry{},
		held:     map[claimKey]map[string]*entry{},
		counts: selection.Fleet{
			TotalByZone: map[string]int64{}, TotalByRack: map[string]int64{},
			ClaimedByZone: map[string]int64{}, ClaimedByRack: map[string]int64{},
		},
	}
}

func newEntry(s *v1alpha1.Server, h policies.Hardware) *entry {
	return &entry{
		server: s,
		state:  policies.ServerStateOf(s),
		zone:   s.Labels[v1alpha1.ZoneLabel],
		rack:   policies.RackOf(s),
		prepare: sync.OnceValue(func() *selection.PreparedCandidate {
			return selection.NewCandidate(policies.CandidateOf(s, h))
		}),
	}
}

// saw takes in a server from the watch. It says whether the change can matter to a claim.
func (f *fleet) saw(s *v1alpha1.Server) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.servers[s.Name]
	if before != nil && before.server.UID == s.UID && !newer(s.ResourceVersion, before.server.ResourceVersion) {
		return false
	}
	f.put(s)
	return before == nil || matters(before, f.servers[s.Name])
}

// wrote takes in the answer to our own write. A server that is gone by now stays gone.
func (f *fleet) wrote(s *v1alpha1.Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.servers[s.Name]
	if before == nil || before.server.UID != s.UID || !newer(s.ResourceVersion, before.server.ResourceVersion) {
		return
	}
	f.put(s)
}

func (f *fleet) put(s *v1alpha1.Server) {
	f.remove(s.Name)
	e := newEntry(s, f.hardware[s.Spec.SystemUUID])
	f.servers[s.Name] = e
	f.byUUID[s.Spec.SystemUUID] = s.Name
	f.count(e, 1)
	if ref := s.Spec.ServerClaimRef; ref != nil {
		key := claimKey{ref.Namespace, ref.Name}
		if f.held[key] == nil {
			f.held[key] = map[string]*entry{}
		}
		f.held[key][s.Name] = e
	} else if s.Status.State == v1alpha1.StateAvailable {
		f.free[s.Name] = e
	}
}

// gone takes a server out. It says whether there was one.
func (f *fleet) gone(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.remove(name)
}

func (f *fleet) remove(name string) bool {
	e := f.servers[name]
	if e == nil {
		return false
	}
	f.count(e, -1)
	delete(f.servers, name)
	delete(f.free, name)
	if uuid := e.server.Spec.SystemUUID; f.byUUID[uuid] == name {
		delete(f.byUUID, uuid)
	}
	if ref := e.server.Spec.ServerClaimRef; ref != nil {
		key := claimKey{ref.Namespace, ref.Name}
		delete(f.held[key], name)
		if len(f.held[key]) == 0 {
			delete(f.held, key)
		}
	}
	return true
}

func (f *fleet) count(e *entry, by int64) {
	f.counts.Total += by
	addTo(f.counts.TotalByZone, e.zone, by)
	addTo(f.counts.TotalByRack, e.rack, by)
	if e.state.Claimed {
		f.counts.Claimed += by
		addTo(f.counts.ClaimedByZone, e.zone, by)
		addTo(f.counts.ClaimedByRack, e.rack, by)
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

// sawInventory takes in what an agent reported. It says whether that can matter to a claim.
func (f *fleet) sawInventory(inv *policyv1alpha1.ServerInventory) bool {
	h := policies.HardwareOf(inv)
	f.mu.Lock()
	defer f.mu.Unlock()
	uuid := inv.Spec.SystemUUID
	if f.hardware[uuid] == h {
		return false
	}
	f.hardware[uuid] = h
	e := f.servers[f.byUUID[uuid]]
	if e == nil {
		return false
	}
	f.put(e.server)
	return f.free[e.server.Name] != nil
}

// forgetInventory drops what an agent reported.
func (f *fleet) forgetInventory(uuid string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.hardware, uuid)
}

// get returns a server, or nil.
func (f *fleet) get(name string) *entry {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.servers[name]
}

// heldBy returns the servers that a claim's name is written on, in no order.
func (f *fleet) heldBy(key claimKey) []*entry {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var all []*entry
	for _, e := range f.held[key] {
		all = append(all, e)
	}
	return all
}

// strays returns the servers that are written for a claim's UID and may be taken back, in no order.
func (f *fleet) strays() []*entry {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var all []*entry
	for _, servers := range f.held {
		for _, e := range servers {
			if retractable(e.server) {
				all = append(all, e)
			}
		}
	}
	return all
}

// eligible returns the servers that the hard contract lets a claim have, in no order.
func (f *fleet) eligible(spec selection.ClaimSpec) []*entry {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if spec.ServerRef != "" {
		if e := f.servers[spec.ServerRef]; e != nil && isEligible(spec, e) {
			return []*entry{e}
		}
		return nil
	}
	var fit []*entry
	for _, e := range f.free {
		if isEligible(spec, e) {
			fit = append(fit, e)
		}
	}
	return fit
}

func isEligible(spec selection.ClaimSpec, e *entry) bool {
	ok, _, _ := selection.Eligible(spec, e.state)
	return ok
}

// tally counts the servers by the code with which the hard contract turns a claim away; matching are those that the
// claim asks for at all, and only they are counted by code.
func (f *fleet) tally(spec selection.ClaimSpec) (total, matching int, byCode map[string]int) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	byCode = map[string]int{}
	look := func(e *entry) {
		ok, code, _ := selection.Eligible(spec, e.state)
		if code == selection.CodeServerRef || code == selection.CodeSelector {
			return
		}
		matching++
		if !ok {
			byCode[code]++
		}
	}
	if spec.ServerRef != "" {
		if e := f.servers[spec.ServerRef]; e != nil {
			look(e)
		}
		return len(f.servers), matching, byCode
	}
	for _, e := range f.servers {
		look(e)
	}
	return len(f.servers), matching, byCode
}

// fleetCounts returns the counts for a policy at an instant.
func (f *fleet) fleetCounts(now int64) selection.Fleet {
	f.mu.RLock()
	defer f.mu.RUnlock()
	c := f.counts
	c.Now = now
	c.TotalByZone, c.TotalByRack = maps.Clone(c.TotalByZone), maps.Clone(c.TotalByRack)
	c.ClaimedByZone, c.ClaimedByRack = maps.Clone(c.ClaimedByZone), maps.Clone(c.ClaimedByRack)
	return c
}

// newer compares resource versions. Where they cannot be compared, what came last counts as newer.
func newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order > 0
}
