// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/controllers/scheduler/index"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

// places are the counts of a spread before any claim is counted, made when the index was at sequence.
type places struct {
	sequence uint64
	counts   map[string]int64
}

// headroom is where the spread of a claim allows one more. A binding that is under way may come to nothing, and so what is assumed
// for other claims counts where it takes room, and not where it would give some: a place that only they keep from being the
// emptiest may be so yet.
type headroom struct {
	spread *placement.Spread
	// counts has what is assumed; sure has only what is written.
	counts, sure map[string]int64
}

// headroomOf is that of a claim without a server. It is nil where the claim is not spread.
func (v *view) headroomOf(a asking) *headroom {
	spread := a.placed.Spread()
	if spread == nil {
		return nil
	}
	return &headroom{spread: spread, counts: v.counts(a), sure: v.countsWithout(a, func(uid types.UID) bool { return !v.together[uid] })}
}

// allows says whether the claim may have a server if all that is under way is written, and whether it may have it in any case.
func (h *headroom) allows(e *index.Entry) (now, surely bool) {
	if h == nil {
		return true, true
	}
	place := h.spread.Place(e.Candidate().Facts())
	if now, _ = h.spread.Allows(place, h.counts); !now {
		return false, false
	}
	least := maps.Clone(h.sure)
	least[place] = h.counts[place]
	surely, _ = h.spread.Allows(place, least)
	return true, surely
}

// counts are those of a claim's spread: how many of the claims that count each place has. What is assumed for a claim counts as
// what is written for it.
func (v *view) counts(a asking) map[string]int64 {
	return v.countsWithout(a, func(types.UID) bool { return false })
}

// countsWithout leaves out what is assumed for some claims.
func (v *view) countsWithout(a asking, out func(uid types.UID) bool) map[string]int64 {
	spread := a.placed.Spread()
	if spread == nil {
		return nil
	}
	counts := maps.Clone(v.placesOf(a))
	if v.neighbours == nil {
		return counts
	}
	assumed := map[types.UID]string{}
	for server, uid := range v.fleet.Assumed() {
		if !out(uid) {
			assumed[uid] = server
		}
	}
	for _, n := range v.neighbours(a.claim.Namespace) {
		if n.claim.UID == a.claim.UID || !spread.Counts(n.claim.Labels, n.gangName()) {
			continue
		}
		for _, e := range v.serversOf(n, assumed[n.claim.UID]) {
			place := spread.Place(e.Candidate().Facts())
			if _, known := counts[place]; known {
				counts[place]++
			}
		}
	}
	return counts
}

func (v *view) placesOf(a asking) map[string]int64 {
	known, sequence := v.places[a.class.key], v.fleet.Sequence()
	if known.counts == nil || known.sequence != sequence {
		all := v.fleet.Matching(a.spec)
		known = places{sequence, a.placed.Places(len(all), func(i int) *selection.Candidate { return all[i].Candidate().Facts() })}
		v.places[a.class.key] = known
	}
	return known.counts
}

// serversOf are the servers that a claim has, or is about to have.
func (v *view) serversOf(n *neighbour, assumed string) []*index.Entry {
	var all []*index.Entry
	if e := v.fleet.Get(assumed); e != nil {
		all = append(all, e)
	}
	for _, e := range v.fleet.HeldBy(index.ClaimKey{Namespace: n.claim.Namespace, Name: n.claim.Name}) {
		if relation := RelationOf(e.Server, n.claim); e.Name() != assumed && (relation == Holds || relation == Adoptable) {
			all = append(all, e)
		}
	}
	return all
}
