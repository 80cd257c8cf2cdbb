// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"maps"
	"math"
	"slices"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/index"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
)

// places are the counts of a spread before any claim is counted, made when the index was at sequence.
type places struct {
	sequence uint64
	counts   map[string]int64
}

// room is where the spread of a claim allows one more. What is assumed for another claim takes room, and gives none until it is written:
// it may come to nothing.
type room struct {
	spread *placement.Spread
	// counts has what is assumed. least is the smallest count of what is sure, which the place atLeast has; another is the smallest of
	// the others.
	counts         map[string]int64
	least, another int64
	atLeast        string
}

// roomOf is that of a claim without a server. It is nil where the claim is not spread.
func (s *solver) roomOf(c *claims.Claim) *room {
	spread := c.Placement.Spread()
	if spread == nil {
		return nil
	}
	counts, sure := s.spreadCounts(c)
	r := &room{spread: spread, counts: counts, least: math.MaxInt64, another: math.MaxInt64}
	for place, n := range sure {
		if n < r.least {
			r.least, r.atLeast, r.another = n, place, r.least
		} else {
			r.another = min(r.another, n)
		}
	}
	return r
}

func (r *room) allows(e *index.Entry) bool {
	if r == nil {
		return true
	}
	place, others := r.spread.Place(e.Candidate().Facts()), r.least
	if place == r.atLeast {
		others = r.another
	}
	return r.spread.Fits(place, r.counts, min(r.counts[place], others))
}

// spreadCounts are those of a claim's spread: how many of the claims that count each place has, and how many without what is assumed. For
// the members of the gang that is being served that is as good as written.
func (s *solver) spreadCounts(c *claims.Claim) (counts, sure map[string]int64) {
	spread := c.Placement.Spread()
	if spread == nil {
		return nil, nil
	}
	counts = maps.Clone(s.placesOf(c))
	sure = maps.Clone(counts)
	count := func(e *index.Entry, isSure bool) {
		place := spread.Place(e.Candidate().Facts())
		if _, known := counts[place]; !known {
			return
		}
		counts[place]++
		if isSure {
			sure[place]++
		}
	}
	counted := func(o *claims.Claim) bool {
		return o.Namespace == c.Namespace && o.UID != c.UID && spread.Counts(o.Labels, o.GangName())
	}
	assumed := map[string]string{}
	for server, uid := range s.Fleet.Assumed() {
		assumed[uid] = server
	}
	for _, o := range s.claimsIn(c.Namespace) {
		if !counted(o) {
			continue
		}
		for _, e := range s.serversOf(o, assumed[o.UID]) {
			relation := e.Holder.RelationOf(e.Name(), o)
			count(e, relation == claims.Holds || relation == claims.Adoptable || slices.Contains(s.bound, o))
		}
	}
	for server, o := range s.given {
		if e := s.Fleet.Get(server); e != nil && counted(o) {
			count(e, true)
		}
	}
	return counts, sure
}

// claimsIn are the claims of a namespace.
func (s *Snapshot) claimsIn(namespace string) []*claims.Claim {
	var all []*claims.Claim
	if s.Claims != nil {
		all = s.Claims(namespace)
	}
	for _, c := range s.bound {
		if c.Namespace == namespace {
			all = append(all, c)
		}
	}
	return all
}

// placesOf are the places of the servers that a claim could ever have, each with 0: a full rack is still a rack.
func (s *solver) placesOf(c *claims.Claim) map[string]int64 {
	known, sequence := s.places[c.Class()], s.Fleet.Sequence()
	if known.counts == nil || known.sequence != sequence {
		judged, spread := s.Cache.of(c.Placement), c.Placement.Spread()
		known = places{sequence, map[string]int64{}}
		for _, e := range s.matchingOf(c) {
			place := spread.Place(e.Candidate().Facts())
			if _, is := known.counts[place]; is || place == "" {
				continue
			}
			if ok, _, _ := selection.Feasible(c.Spec, e.State); ok && s.Cache.judge(judged, e).accepted() {
				known.counts[place] = 0
			}
		}
		s.places[c.Class()] = known
	}
	return known.counts
}

// listed are servers as they were when the index was at sequence.
type listed struct {
	sequence uint64
	entries  []*index.Entry
}

// matchingOf are the servers that a claim asks for by name and labels, in any state.
func (s *solver) matchingOf(c *claims.Claim) []*index.Entry {
	known, sequence := s.matching[c.Contract()], s.Fleet.Sequence()
	if known.entries == nil || known.sequence != sequence {
		known = listed{sequence, s.Fleet.Matching(c.Spec)}
		s.matching[c.Contract()] = known
	}
	return known.entries
}

// serversOf are the servers that a claim has, or is about to have.
func (s *solver) serversOf(c *claims.Claim, assumed string) []*index.Entry {
	var all []*index.Entry
	if e := s.Fleet.Get(assumed); e != nil {
		all = append(all, e)
	}
	for _, e := range s.Fleet.HeldBy(c.Key) {
		relation := e.Holder.RelationOf(e.Name(), c)
		if e.Name() != assumed && (relation == claims.Holds || relation == claims.Adoptable) {
			all = append(all, e)
		}
	}
	return all
}
