// SPDX-License-Identifier: Apache-2.0

package index

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// Index is every server as it was seen last: by the watch, or in the answer to a write. An older version never replaces a
// newer one, so that a binding that was written holds here at once and a watch that lags does not undo it. It is safe for
// concurrent use.
type Index struct {
	mu       sync.RWMutex
	servers  map[string]*Entry
	byUUID   map[string]string            // server name by system UUID
	hardware map[string]policies.Hardware // by system UUID
	// numbered holds the servers by slot; spare are the slots of servers that are gone.
	numbered []*Entry
	spare    []uint32
	// all and labels are every server; free and freeLabels those that are Available, without a claim and not assumed.
	all, free          slots
	labels, freeLabels postings
	// held are the servers that are written for a claim.
	held map[ClaimKey]map[string]*Entry
	// heldIn counts those by the namespace of the claim.
	heldIn map[string]policies.Held
	// assumed says for which claim a server counts as claimed though that is not written yet, and assumedIn of which namespace.
	assumed   map[string]types.UID
	assumedIn map[string]string
	// census counts the servers, with regard to what is assumed of them, and is kept up to date with each change.
	census *selection.Census
	// sequence counts the versions that were taken in; offered is how often a server became free, or changed while it was, in a way
	// that matters.
	sequence, offered uint64
}

// ClaimKey names a claim, by whatever UID.
type ClaimKey struct{ Namespace, Name string }

// New makes an index of no servers.
func New() *Index {
	return &Index{
		servers:    map[string]*Entry{},
		byUUID:     map[string]string{},
		hardware:   map[string]policies.Hardware{},
		labels:     postings{},
		freeLabels: postings{},
		held:       map[ClaimKey]map[string]*Entry{},
		heldIn:     map[string]policies.Held{},
		assumed:    map[string]types.UID{},
		assumedIn:  map[string]string{},
		census:     selection.NewCensus(),
	}
}

// Saw takes in a server from the watch. The Change is empty where a newer version is known already.
func (x *Index) Saw(s *v1alpha1.Server) Change {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.servers[s.Name]
	if before != nil && before.Server.UID == s.UID && !Newer(s.ResourceVersion, before.Server.ResourceVersion) {
		return Change{}
	}
	x.put(s)
	return Change{before, x.servers[s.Name]}
}

// Wrote takes in the answer to a write of this process, or to a read past the cache. A server that is gone by now stays gone. The watch
// will have nothing new to tell of this version, so that the Change, which may be empty, is the caller's to pass on: it can hold what
// others wrote.
func (x *Index) Wrote(s *v1alpha1.Server) Change {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.servers[s.Name]
	if before == nil || before.Server.UID != s.UID || !Newer(s.ResourceVersion, before.Server.ResourceVersion) {
		return Change{}
	}
	x.put(s)
	return Change{before, x.servers[s.Name]}
}

// Gone takes a server out.
func (x *Index) Gone(name string) Change {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.servers[name]
	if e == nil {
		return Change{}
	}
	x.remove(e)
	x.sequence++
	delete(x.servers, name)
	x.all.remove(e.slot)
	x.numbered[e.slot] = nil
	x.spare = append(x.spare, e.slot)
	return Change{Before: e}
}

// SawInventory takes in what an agent reported. The Change is that of its server, empty where there is none or nothing new.
func (x *Index) SawInventory(inv *policyv1alpha1.ServerInventory) Change {
	h := policies.HardwareOf(inv)
	x.mu.Lock()
	defer x.mu.Unlock()
	uuid := inv.Spec.SystemUUID
	if x.hardware[uuid] == h {
		return Change{}
	}
	x.hardware[uuid] = h
	return x.renew(uuid)
}

// ForgetInventory drops what an agent reported. The Change is that of its server, empty where there is none or nothing was known.
func (x *Index) ForgetInventory(uuid string) Change {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, known := x.hardware[uuid]; !known {
		return Change{}
	}
	delete(x.hardware, uuid)
	return x.renew(uuid)
}

// renew makes a server anew whose inventory changed.
func (x *Index) renew(uuid string) Change {
	before := x.servers[x.byUUID[uuid]]
	if before == nil {
		return Change{}
	}
	x.put(before.Server)
	return Change{before, x.servers[before.Name()]}
}

// put replaces what is known of a server.
func (x *Index) put(s *v1alpha1.Server) {
	e := newEntry(s, x.hardware[s.Spec.SystemUUID])
	x.sequence++
	e.since = x.sequence
	if before := x.servers[s.Name]; before != nil {
		x.remove(before)
		e.slot = before.slot
		if before.Server.UID == s.UID && !(Change{before, e}).Matters() {
			e.since = before.since
		}
	} else {
		e.slot = x.number()
		x.all.add(e.slot)
	}
	x.servers[s.Name], x.numbered[e.slot] = e, e
	x.byUUID[s.Spec.SystemUUID] = s.Name
	x.labels.add(s.Labels, e.slot)
	if s.Spec.ServerClaimRef != nil {
		key := e.Claim()
		if x.held[key] == nil {
			x.held[key] = map[string]*Entry{}
		}
		x.held[key][s.Name] = e
		x.countHeld(e, 1)
	}
	x.settle(e, 1)
}

// number gives a slot to a new server.
func (x *Index) number() uint32 {
	if last := len(x.spare) - 1; last >= 0 {
		slot := x.spare[last]
		x.spare = x.spare[:last]
		return slot
	}
	x.numbered = append(x.numbered, nil)
	return uint32(len(x.numbered) - 1)
}

// remove takes a version out of everything that is found by what it says.
func (x *Index) remove(e *Entry) {
	x.settle(e, -1)
	x.labels.remove(e.Server.Labels, e.slot)
	if uuid := e.Server.Spec.SystemUUID; x.byUUID[uuid] == e.Name() {
		delete(x.byUUID, uuid)
	}
	if e.Server.Spec.ServerClaimRef != nil {
		key := e.Claim()
		delete(x.held[key], e.Name())
		x.countHeld(e, -1)
		if len(x.held[key]) == 0 {
			delete(x.held, key)
		}
	}
}

// settle adds a server to the counts and to the free ones, or takes it out of both, with regard to what is assumed of it.
func (x *Index) settle(e *Entry, by int64) {
	if by > 0 {
		x.census.Add(x.counted(e))
	} else {
		x.census.Remove(x.counted(e))
	}
	if _, assumed := x.assumed[e.Name()]; assumed || !e.IsFree() {
		return
	}
	if by > 0 {
		if e.since == x.sequence {
			x.offered++
		}
		x.free.add(e.slot)
		x.freeLabels.add(e.Server.Labels, e.slot)
		return
	}
	x.free.remove(e.slot)
	x.freeLabels.remove(e.Server.Labels, e.slot)
}

// countHeld counts a server that is written for a claim.
func (x *Index) countHeld(e *Entry, by int) {
	namespace := e.Claim().Namespace
	held := x.heldIn[namespace]
	held.Count(e.Server, by)
	x.heldIn[namespace] = held
	if held == (policies.Held{}) {
		delete(x.heldIn, namespace)
	}
}

// counted is a server as it counts: for the claim that is written on it, or else the one that is assumed to have it.
func (x *Index) counted(e *Entry) selection.Counted {
	namespace := e.Claim().Namespace
	if namespace == "" {
		namespace = x.assumedIn[e.Name()]
	}
	_, assumed := x.assumed[e.Name()]
	return selection.Counted{Zone: e.Zone, Rack: e.Rack, Claimed: e.State.Claimed || assumed, Free: selection.Free(e.State), Namespace: namespace}
}

// Newer says whether one resource version is later than another. Where they cannot be compared, what came last counts as later.
func Newer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order > 0
}
