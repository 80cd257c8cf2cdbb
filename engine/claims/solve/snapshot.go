// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"context"

	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/index"
	"github.com/metalaw/metalaw/engine/selection"
)

// Policy is the part of a bundle that chooses; *selection.Policy is one.
type Policy interface {
	// Select looks at all candidates. An error means that nothing is known, and never that no server fits.
	Select(ctx context.Context, claim selection.Claim, candidates []*selection.PreparedCandidate, fleet selection.Fleet) (selection.Result, error)
}

// telling is a Policy that says what its choice follows from. One that does not is asked for every claim.
type telling interface {
	// Asks is equal for claims that the policy cannot tell apart.
	Asks(claim selection.Claim) string
	// FollowsFleet says whether the counts of the fleet, or time, can change the choice.
	FollowsFleet() bool
}

// ranker is a Policy that gives a ranking of any length.
type ranker interface {
	Rank(ctx context.Context, claim selection.Claim, candidates []*selection.PreparedCandidate, fleet selection.Fleet,
		most int) (selection.Result, error)
}

// explainer is a Policy that gives every reason against one server.
type explainer interface {
	ranker
	Judge(ctx context.Context, claim selection.Claim, candidate *selection.PreparedCandidate, fleet selection.Fleet) (selection.Judgement, error)
}

var (
	_ telling   = &selection.Policy{}
	_ explainer = &selection.Policy{}
)

// Snapshot is what claims are solved from. It remembers what Solve found out and gave away, so that one Snapshot serves a whole cycle. One
// goroutine at a time uses it.
type Snapshot struct {
	// Fleet is every server, with what is assumed of it.
	Fleet *index.Index
	// Policy chooses; nil where none is in force.
	Policy Policy
	// Quota bounds the servers of a namespace.
	Quota bundle.Quota
	// Now is the instant, in seconds since 1970.
	Now int64
	// Claims are all claims of a namespace; nil where none are known.
	Claims func(namespace string) []*claims.Claim
	// Cache remembers what placements say of servers from one Snapshot to the next; nil is an empty one.
	Cache *PlacementCache
	// Spent is what it took since the caller set it to zero.
	Spent Spent

	memory
}

// memory is what was found out for one claim and holds for those that ask for the same, and what was given away.
type memory struct {
	rankings map[string]*ranking
	// exhausted holds the equivalence classes for which no server is left.
	exhausted map[string]bool
	feasible  map[string]*feasible
	places    map[string]places
	matching  map[string]listed
	// taken are the servers that were given away since the Snapshot was made, by number.
	taken []uint32
	// given are the servers that are given to members of the gang that is being served; gives counts the changes of that.
	given  map[string]*claims.Claim
	gives  uint64
	census *selection.Census
	// bound are claims that were bound and are not known to Claims.
	bound []*claims.Claim
}

// begin makes room for what is to be remembered.
func (s *Snapshot) begin() {
	if s.Cache == nil {
		s.Cache = NewPlacementCache()
	}
	if s.rankings == nil {
		s.rankings, s.exhausted, s.feasible = map[string]*ranking{}, map[string]bool{}, map[string]*feasible{}
		s.places, s.matching, s.given = map[string]places{}, map[string]listed{}, map[string]*claims.Claim{}
	}
}

// Spent is what was asked of the policy.
type Spent struct {
	// Evaluations is how often the policy was asked, Unjudged how many servers it failed for.
	Evaluations, Unjudged int
	Failures              []Failures
}

// Failures are servers that the policy fails for. All says that it failed for all that it was asked about.
type Failures struct {
	Servers []selection.CandidateError
	All     bool
}

// counts are those of the fleet for a policy that judges a claim of a namespace, with what is given to members of a gang.
func (s *Snapshot) counts(namespace string) selection.Fleet {
	if len(s.given) == 0 {
		return s.Fleet.CountsFor(namespace, s.Now)
	}
	if s.census == nil {
		s.census = s.Fleet.Census()
		for server, c := range s.given {
			if e := s.Fleet.Get(server); e != nil {
				e.Assume(s.census, c.Namespace)
			}
		}
	}
	return s.census.FleetFor(namespace, s.Now)
}

// version changes with every change of the counts.
func (s *Snapshot) version() uint64 { return s.Fleet.Version() + s.gives }

// give has a server count as claimed by a member of a gang.
func (s *Snapshot) give(e *index.Entry, c *claims.Claim) {
	s.given[e.Name()] = c
	s.gives++
	s.taken = append(s.taken, e.Number())
	if s.census != nil {
		e.Assume(s.census, c.Namespace)
	}
}

// keepGiven ends what is given to members of a gang and is going to be theirs.
func (s *Snapshot) keepGiven() {
	clear(s.given)
	s.census = nil
}

// takeBack ends what is given to members of a gang in vain. What was found out for them meanwhile is forgotten.
func (s *Snapshot) takeBack() {
	if len(s.given) == 0 {
		return
	}
	s.keepGiven()
	s.gives++
	s.Forget()
}

// Forget drops what was found out for claims: servers came back that were taken for gone.
func (s *Snapshot) Forget() {
	clear(s.rankings)
	clear(s.exhausted)
	clear(s.feasible)
}

// Close gives the room of what was found out back to the Cache, for the next Snapshot. This one is not to be used any more.
func (s *Snapshot) Close() {
	if s.Cache != nil {
		s.Cache.keep(s.feasible)
	}
	s.memory = memory{}
}

// Exhausted says that no server is left for the equivalence class of a claim.
func (s *Snapshot) Exhausted(c *claims.Claim) bool { return s.exhausted[c.Class()] }

// Assume has the server of a Bind count as claimed in the fleet. It says no where the server changed meanwhile in what matters to claims.
func (s *Snapshot) Assume(r Result) (*index.Entry, bool) {
	e, ok := s.Fleet.Assume(r.Entry.Name(), r.Claim.Spec, r.Claim.UID, r.Claim.Namespace)
	if !ok {
		return nil, false
	}
	if e.Since() != r.Entry.Since() {
		s.Fleet.Release(e.Name(), r.Claim.UID)
		return nil, false
	}
	s.taken = append(s.taken, e.Number())
	return e, true
}

// Bind has the servers of results count as claimed, also by claims that the Snapshot does not know of.
func (s *Snapshot) Bind(results []Result) {
	for _, r := range results {
		if r.Action != Bind {
			continue
		}
		if _, ok := s.Assume(r); ok {
			s.bound = append(s.bound, r.Claim)
		}
	}
}
