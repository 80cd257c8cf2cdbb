// SPDX-License-Identifier: Apache-2.0

package index

import (
	"sync"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/selection"
)

// Index is every server as it was put in last. It is safe for concurrent use.
type Index struct {
	mu      sync.RWMutex
	servers map[string]*Entry
	// numbered holds the servers by slot; spare are the slots of servers that are gone.
	numbered []*Entry
	spare    []uint32
	// all and labels are every server; free and freeLabels those that are Available, without a claim and not assumed.
	all, free          slots
	labels, freeLabels postings
	// held are the servers that are written for a claim.
	held map[claims.Key]map[string]*Entry
	// heldIn counts those by the namespace of the claim.
	heldIn map[string]claims.Held
	// assumed says for which claim a server counts as claimed though that is not written yet, and assumedIn of which namespace.
	assumed, assumedIn map[string]string
	// census counts the servers, with regard to what is assumed of them, and is kept up to date with each change.
	census *selection.Census
	// sequence counts the versions that were taken in; offered is how often a server became free, or changed while it was, in a way
	// that matters.
	sequence, offered uint64
}

// New makes an index of no servers.
func New() *Index {
	return &Index{
		servers:    map[string]*Entry{},
		labels:     postings{},
		freeLabels: postings{},
		held:       map[claims.Key]map[string]*Entry{},
		heldIn:     map[string]claims.Held{},
		assumed:    map[string]string{},
		assumedIn:  map[string]string{},
		census:     selection.NewCensus(),
	}
}

// Put takes in a version of a server. Matters says whether it differs from the one before in what matters to claims.
func (x *Index) Put(r Record, matters bool) *Entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := &Entry{Record: r}
	e.open = e.Eligible(Everything)
	x.sequence++
	e.since = x.sequence
	if before := x.servers[e.Name()]; before != nil {
		x.remove(before)
		e.slot = before.slot
		if !matters {
			e.since = before.since
		}
	} else {
		e.slot = x.number()
		x.all = x.all.with(e.slot)
	}
	x.servers[e.Name()], x.numbered[e.slot] = e, e
	x.labels.add(e.State.Labels, e.slot)
	if e.State.Claimed {
		key := e.Claim()
		if x.held[key] == nil {
			x.held[key] = map[string]*Entry{}
		}
		x.held[key][e.Name()] = e
		x.countHeld(e, 1)
	}
	x.settle(e, 1)
	return e
}

// Gone takes a server out. It returns what was known of it; nil where it was not known.
func (x *Index) Gone(name string) *Entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.servers[name]
	if e == nil {
		return nil
	}
	x.remove(e)
	x.sequence++
	delete(x.servers, name)
	x.all = x.all.without(e.slot)
	x.numbered[e.slot] = nil
	x.spare = append(x.spare, e.slot)
	return e
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
	x.labels.remove(e.State.Labels, e.slot)
	if e.State.Claimed {
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
	_, assumed := x.assumed[e.Name()]
	counted := e.counted(assumed, x.assumedIn[e.Name()])
	if by > 0 {
		x.census.Add(counted)
	} else {
		x.census.Remove(counted)
	}
	if assumed || !e.IsFree() {
		return
	}
	if by > 0 {
		if e.since == x.sequence {
			x.offered++
		}
		x.free = x.free.with(e.slot)
		x.freeLabels.add(e.State.Labels, e.slot)
		return
	}
	x.free = x.free.without(e.slot)
	x.freeLabels.remove(e.State.Labels, e.slot)
}

// countHeld counts a server that is written for a claim.
func (x *Index) countHeld(e *Entry, by int) {
	namespace := e.Claim().Namespace
	held := x.heldIn[namespace]
	held.Servers += by * e.Counts.Servers
	held.Orphaned += by * e.Counts.Orphaned
	x.heldIn[namespace] = held
	if held == (claims.Held{}) {
		delete(x.heldIn, namespace)
	}
}
