// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"maps"
	"slices"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/selection"
)

// Everything asks for no server in particular.
var Everything = selection.ClaimSpec{}

// Get returns a server, or nil.
func (x *Index) Get(name string) *Entry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.servers[name]
}

// Len is the number of servers.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.servers)
}

// HeldBy returns the servers that a claim's name is written on, in no order.
func (x *Index) HeldBy(key claims.Key) []*Entry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	servers := x.held[key]
	if len(servers) == 0 {
		return nil
	}
	all := make([]*Entry, 0, len(servers))
	for _, e := range servers {
		all = append(all, e)
	}
	return all
}

// HeldIn counts the servers that are written for claims of a namespace.
func (x *Index) HeldIn(namespace string) claims.Held {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.heldIn[namespace]
}

// Underway is how many servers count as claimed by claims of a namespace that are not written for any claim yet.
func (x *Index) Underway(namespace string) (n int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for name, in := range x.assumedIn {
		if e := x.servers[name]; in == namespace && e != nil && !e.State.Claimed {
			n++
		}
	}
	return n
}

// Free returns a server if the hard contract lets a claim have it and no other claim is assumed to have it; else nil.
func (x *Index) Free(name string, spec selection.ClaimSpec) *Entry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.available(name, spec)
}

func (x *Index) available(name string, spec selection.ClaimSpec) *Entry {
	e := x.servers[name]
	if e == nil || !e.Eligible(spec) {
		return nil
	}
	if _, assumed := x.assumed[name]; assumed {
		return nil
	}
	return e
}

// Eligible returns the servers that the hard contract lets a claim have, in no order.
func (x *Index) Eligible(spec selection.ClaimSpec) []*Entry { return x.AppendEligible(nil, spec) }

// AppendEligible appends those that Eligible returns. It looks only at the free servers that bear the rarest of the labels that the
// claim selects.
func (x *Index) AppendEligible(fit []*Entry, spec selection.ClaimSpec) []*Entry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if spec.ServerRef != "" {
		if e := x.available(spec.ServerRef, spec); e != nil {
			fit = append(fit, e)
		}
		return fit
	}
	list := x.freeLabels.narrow(spec.Selector, x.free)
	fit = slices.Grow(fit, len(list))
	for _, slot := range list {
		if e := x.numbered[slot]; e.Eligible(spec) {
			fit = append(fit, e)
		}
	}
	return fit
}

// Matching returns the servers that a claim asks for by name and labels, in any state and order. Where it returns
// none, no server of the fleet can ever serve the claim as things are.
func (x *Index) Matching(spec selection.ClaimSpec) []*Entry {
	asked, _ := x.MatchingWithin(context.Background(), spec) // which does not end
	return asked
}

// betweenLooks is how many servers are looked at from one look at the context to the next.
const betweenLooks = 512

// MatchingWithin is Matching until a context ends. It looks at the servers as they are at its beginning, and keeps no
// other caller from changing the index meanwhile.
func (x *Index) MatchingWithin(ctx context.Context, spec selection.ClaimSpec) ([]*Entry, error) {
	x.mu.RLock()
	some := x.askable(spec)
	x.mu.RUnlock()
	asked := some[:0]
	for i, e := range some {
		if i%betweenLooks == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if spec.Selector.Matches(e.State.Labels) {
			asked = append(asked, e)
		}
	}
	return asked, nil
}

// askable are the servers that a claim can be asking for: the one that it names, or those that bear the rarest of the labels that it
// selects.
func (x *Index) askable(spec selection.ClaimSpec) []*Entry {
	if spec.ServerRef != "" {
		if e := x.servers[spec.ServerRef]; e != nil {
			return []*Entry{e}
		}
		return nil
	}
	list := x.labels.narrow(spec.Selector, x.all)
	all := make([]*Entry, len(list))
	for i, slot := range list {
		all[i] = x.numbered[slot]
	}
	return all
}

// Tally counts the servers by the code with which the hard contract turns a claim away; matching are those that the claim asks
// for at all, and only they are counted by code. A server that is assumed for a claim counts as claimed.
func (x *Index) Tally(spec selection.ClaimSpec) (total, matching int, byCode map[string]int) {
	x.mu.RLock()
	some, assumed, total := x.askable(spec), maps.Clone(x.assumed), len(x.servers)
	x.mu.RUnlock()
	byCode = map[string]int{}
	for _, e := range some {
		state := e.State
		if _, is := assumed[e.Name()]; is {
			state.Claimed = true
		}
		ok, code, _ := selection.Eligible(spec, state)
		if code == selection.CodeServerRef || code == selection.CodeSelector {
			continue
		}
		matching++
		if !ok {
			byCode[code]++
		}
	}
	return total, matching, byCode
}

// Counts returns the counts of the whole fleet at an instant, without those of a namespace. The maps are not to be changed.
func (x *Index) Counts(now int64) selection.Fleet {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.census.Fleet(now)
}

// CountsFor returns the counts for a policy that judges a claim of a namespace. The maps are not to be changed.
func (x *Index) CountsFor(namespace string, now int64) selection.Fleet {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.census.FleetFor(namespace, now)
}

// Version changes with every change of the Counts.
func (x *Index) Version() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.census.Changes()
}

// Sequence grows with every version that is taken in. An Entry whose Since is later has changed since then.
func (x *Index) Sequence() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.sequence
}

// Offered grows whenever a server may have become free, or changed while it was. As long as it stays the same, what was Eligible
// can only have become less.
func (x *Index) Offered() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.offered
}

// Census is a copy of the counts of the whole fleet, which is counted on by itself.
func (x *Index) Census() *selection.Census {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.census.Clone()
}
