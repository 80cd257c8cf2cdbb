// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"maps"

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

// room is where the spread of a claim allows one more. What is assumed for a claim counts as what is written for it.
type room struct {
	spread   *placement.Spread
	counts   map[string]int64
	emptiest int64
}

// roomOf is that of a claim without a server. It is nil where the claim is not spread.
func (s *Snapshot) roomOf(c *claims.Claim) *room {
	spread := c.Placement.Spread()
	if spread == nil {
		return nil
	}
	counts := s.spreadCounts(c)
	return &room{spread, counts, placement.Emptiest(counts)}
}

func (r *room) allows(e *index.Entry) bool {
	return r == nil || r.spread.Fits(r.spread.Place(e.Candidate().Facts()), r.counts, r.emptiest)
}

// spreadCounts are those of a claim's spread: how many of the claims that count each place has.
func (s *Snapshot) spreadCounts(c *claims.Claim) map[string]int64 {
	spread := c.Placement.Spread()
	if spread == nil {
		return nil
	}
	counts := maps.Clone(s.placesOf(c))
	count := func(e *index.Entry) {
		place := spread.Place(e.Candidate().Facts())
		if _, known := counts[place]; known {
			counts[place]++
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
			count(e)
		}
	}
	for server, o := range s.given {
		if e := s.Fleet.Get(server); e != nil && counted(o) {
			count(e)
		}
	}
	return counts
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
func (s *Snapshot) placesOf(c *claims.Claim) map[string]int64 {
	known, sequence := s.places[c.Class()], s.Fleet.Sequence()
	if known.counts == nil || known.sequence != sequence {
		t, spread := s.cache().of(c.Placement), c.Placement.Spread()
		known = places{sequence, map[string]int64{}}
		for _, e := range s.matchingOf(c) {
			place := spread.Place(e.Candidate().Facts())
			if _, is := known.counts[place]; is || place == "" {
				continue
			}
			if ok, _, _ := selection.Feasible(c.Spec, e.State); ok && s.cache().judge(t, e).accepted() {
				known.counts[place] = 0
			}
		}
		if s.places == nil {
			s.places = map[string]places{}
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

// matchingOf are the servers that a claim asks for by name and labels, in whatever state.
func (s *Snapshot) matchingOf(c *claims.Claim) []*index.Entry {
	known, sequence := s.matching[c.Contract()], s.Fleet.Sequence()
	if known.entries == nil || known.sequence != sequence {
		known = listed{sequence, s.Fleet.Matching(c.Spec)}
		if s.matching == nil {
			s.matching = map[string]listed{}
		}
		s.matching[c.Contract()] = known
	}
	return known.entries
}

// serversOf are the servers that a claim has, or is about to have.
func (s *Snapshot) serversOf(c *claims.Claim, assumed string) []*index.Entry {
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
