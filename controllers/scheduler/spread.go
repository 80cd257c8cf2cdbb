// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"maps"
	"math"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
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
	// counts has what is assumed, and emptiest is the least of it.
	counts   map[string]int64
	emptiest int64
	// least is the smallest count of what is written alone, which the place atLeast has; another is the smallest of the others.
	least, another int64
	atLeast        string
	// writing says that what is contended counts as open; open is what was found out of places; contended that of some it is not known.
	writing   bool
	open      map[string]bool
	contended bool
	// last is the place that was asked about last: many servers stand side by side.
	last     string
	lastOpen bool
}

// headroomOf is that of a claim without a server. It is nil where the claim is not spread.
func (v *view) headroomOf(ctx context.Context, a asking) *headroom {
	spread := a.placed.Spread()
	if spread == nil {
		return nil
	}
	counts, sure := v.bothCounts(ctx, a)
	h := &headroom{spread: spread, counts: counts, emptiest: placement.Emptiest(counts), least: math.MaxInt64, another: math.MaxInt64}
	for place, n := range sure {
		if n < h.least {
			h.least, h.atLeast, h.another = n, place, h.least
		} else {
			h.another = min(h.another, n)
		}
	}
	return h
}

// allows says whether the claim may have a server in a place if all that is under way is written, and whether it may have it in any
// case.
func (h *headroom) allows(place string) (now, surely bool) {
	if !h.spread.Fits(place, h.counts, h.emptiest) {
		return false, false
	}
	others := h.least
	if place == h.atLeast {
		others = h.another
	}
	return true, h.spread.Fits(place, h.counts, min(h.counts[place], others))
}

// openPlaces begins to tell the places where the claim may have a server. A contended one it may come to have or not, by what becomes of
// what is assumed for others: as long as that is being written it is open, and who chooses it waits; what is kept, or in doubt, may
// stay so for long.
func (h *headroom) openPlaces(writing bool) {
	if h != nil {
		h.writing, h.open, h.contended, h.last = writing, map[string]bool{}, false, ""
	}
}

// isOpen says whether the claim may have a server, by where it stands.
func (h *headroom) isOpen(e *index.Entry) bool {
	if h == nil {
		return true
	}
	place := h.spread.Place(e.Candidate().Facts())
	if place == h.last && place != "" {
		return h.lastOpen
	}
	open, known := h.open[place]
	if !known {
		now, surely := h.allows(place)
		open = surely || now && h.writing
		h.open[place], h.contended = open, h.contended || now && !open
	}
	h.last, h.lastOpen = place, open
	return open
}

// isContended says that some server is left out which the claim may come to have.
func (h *headroom) isContended() bool { return h != nil && h.contended }

// allowsServer is allows for where a server stands.
func (h *headroom) allowsServer(e *index.Entry) (now, surely bool) {
	if h == nil {
		return true, true
	}
	return h.allows(h.spread.Place(e.Candidate().Facts()))
}

// counts are those of a claim's spread: how many of the claims that count each place has. What is assumed for a claim counts as
// what is written for it.
func (v *view) counts(ctx context.Context, a asking) map[string]int64 {
	counts, _ := v.bothCounts(ctx, a)
	return counts
}

// bothCounts are the counts of a claim's spread, and those without what is assumed. For the members of the gang that is being served
// that is as good as written.
func (v *view) bothCounts(ctx context.Context, a asking) (counts, sure map[string]int64) {
	spread := a.placed.Spread()
	if spread == nil {
		return nil, nil
	}
	counts = maps.Clone(v.placesOf(ctx, a))
	sure = maps.Clone(counts)
	if v.neighbours == nil {
		return counts, sure
	}
	assumed := map[types.UID]string{}
	for server, uid := range v.fleet.Assumed() {
		assumed[uid] = server
	}
	for _, n := range v.neighbours(a.claim.Namespace) {
		if n.claim.UID == a.claim.UID || !spread.Counts(n.claim.Labels, n.gangName()) {
			continue
		}
		for _, e := range v.serversOf(n, assumed[n.claim.UID]) {
			place := spread.Place(e.Candidate().Facts())
			if _, known := counts[place]; !known {
				continue
			}
			counts[place]++
			if v.together[n.claim.UID] || writtenOn(e, n) {
				sure[place]++
			}
		}
	}
	return counts, sure
}

// placesOf are the places of the servers that a claim could ever have, each with 0. What a taint or the policy keeps from it for good is no
// place: nothing would ever come there, and the claim would wait for that.
func (v *view) placesOf(ctx context.Context, a asking) map[string]int64 {
	claim := policies.SelectionClaimOf(a.claim)
	claim.Priority = a.priority
	key := a.class.key
	p, attains := v.policy.(policies.Attaining)
	if attains = attains && p.TurnsAwayForGood(); attains {
		key += "\x00" + p.Asks(claim)
	}
	known, sequence := v.places[key], v.fleet.Sequence()
	if known.counts == nil || known.sequence != sequence {
		var entries []*index.Entry
		for _, e := range v.matchingOf(a) {
			if ok, _, _ := selection.Feasible(a.spec, e.State); ok {
				entries = append(entries, e)
			}
		}
		var could func(some []int) []int
		if attains {
			could = v.couldEver(ctx, p, claim, entries)
		}
		t, spread := v.judgements.of(a.placed), a.placed.Spread()
		known = places{sequence, placement.CountedPlaces(len(entries),
			func(i int) string { return spread.Place(entries[i].Candidate().Facts()) },
			func(i int) bool { return v.judgements.judge(t, entries[i]).accepted() }, could)}
		v.places[key] = known
	}
	return known.counts
}

// couldEver says which of some servers the policy might ever allow the claim. Those that its rules fail for are among them: nobody knows.
func (v *view) couldEver(ctx context.Context, p policies.Attaining, claim selection.Claim, entries []*index.Entry) func(some []int) []int {
	most := 0
	for _, e := range entries {
		most = max(most, int(e.Number())+1)
	}
	known := v.attained.of(v.revision, p.Asks(claim), most)
	return func(some []int) []int {
		var could, asked []int
		var candidates []*selection.PreparedCandidate
		for _, i := range some {
			e := entries[i]
			switch known[e.Number()].at(v.judgements.stamp(e)) {
			case selection.Attained:
				could = append(could, i)
			case selection.TurnedAway:
			case selection.Unsure:
				asked, candidates = append(asked, i), append(candidates, e.Candidate())
			}
		}
		if len(asked) == 0 {
			return could
		}
		v.judgements.work += lookCost * int64(len(asked))
		each := policies.Attain(ctx, p, claim, candidates, v.fleet.CountsFor(claim.Namespace, v.now))
		for k, i := range asked {
			if each[k] != selection.TurnedAway {
				could = append(could, i)
			}
			known[entries[i].Number()] = attainmentOf(each[k], v.judgements.stamp(entries[i]))
		}
		return could
	}
}

// listed are servers as they were when the index was at sequence.
type listed struct {
	sequence uint64
	entries  []*index.Entry
}

// matchingOf are the servers that a claim asks for by name and labels, in whatever state.
func (v *view) matchingOf(a asking) []*index.Entry {
	known, sequence := v.matching[a.class.asked], v.fleet.Sequence()
	if known.entries == nil || known.sequence != sequence {
		known = listed{sequence, v.fleet.Matching(a.spec)}
		v.matching[a.class.asked] = known
	}
	return known.entries
}

// serversOf are the servers that a claim has, or is about to have.
func (v *view) serversOf(n *neighbour, assumed string) []*index.Entry {
	var all []*index.Entry
	if e := v.fleet.Get(assumed); e != nil {
		all = append(all, e)
	}
	for _, e := range v.fleet.HeldBy(index.ClaimKey{Namespace: n.claim.Namespace, Name: n.claim.Name}) {
		if e.Name() != assumed && writtenOn(e, n) {
			all = append(all, e)
		}
	}
	return all
}

// writtenOn says that a claim is written on a server.
func writtenOn(e *index.Entry, n *neighbour) bool {
	relation := RelationOf(index.Server(e), n.claim)
	return relation == Holds || relation == Adoptable
}
