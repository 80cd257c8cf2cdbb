// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"reflect"
	"slices"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/matching"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// MayBeKept are the servers that may be kept free for a gang which has waited for long, by name, each with a member that could have it:
// all that its members could have now, where not every one of them finds a server, and the whole fleet, free or not, could ever have
// enough. Members are all that count. Which of them are kept is for the scheduler alone to know, because it keeps on to those that it
// chose; and it may know of reasons to keep none. No other server is kept for the gang.
func MayBeKept(ctx context.Context, policy *selection.Policy, quota bundle.Quota, members []Member, f *Fleet) (
	map[string]*v1alpha1.ServerClaim, error) {
	s := newSearch(policy, quota, members, f)
	if s.refused != nil || policy == nil {
		return nil, nil
	}
	now, err := s.match(ctx)
	if err != nil {
		return nil, err
	}
	if now.Servers == 0 {
		return nil, nil
	}
	if could, err := s.couldEver(ctx); err != nil || !could {
		return nil, err
	}
	if served, err := Serve(ctx, policy, quota, members, f); err != nil || served.Complete {
		return nil, err
	}
	kept := make(map[string]*v1alpha1.ServerClaim, now.Servers)
	for k, ranked := range now.Ranked {
		for _, n := range ranked {
			kept[now.names[n]] = s.members[s.wanting[k]].Claim
		}
	}
	return kept, nil
}

// couldEver says whether each member could have a server if all were free but for those of the gang itself, wherever they stand.
func (s *search) couldEver(ctx context.Context) (bool, error) {
	own := map[string]bool{}
	for _, m := range s.members {
		own[s.fleet.own[keyOf(m.Claim)]] = true
	}
	p := matching.Problem{Servers: len(s.fleet.servers)}
	var asks []asked
	for k, i := range s.wanting {
		asks = append(asks, s.asks(i))
		if alike := slices.IndexFunc(asks[:k], func(a asked) bool { return reflect.DeepEqual(a, asks[k]) }); alike >= 0 {
			p.Ranked = append(p.Ranked, p.Ranked[alike])
			continue
		}
		j, err := newJudge(ctx, s.policy, s.members[i].Claim, s.members[i].Priority, s.fleet)
		if err != nil {
			return false, err
		}
		p.Ranked = append(p.Ranked, j.ever(own))
	}
	_, complete := p.Solve()
	return complete, nil
}

// ever are the servers that the claim could have if they were free, by their number in the fleet, without some.
func (j *judge) ever(without map[string]bool) []int {
	var some, could []int
	var candidates []*selection.PreparedCandidate
	for i := range j.fleet.servers {
		s := &j.fleet.servers[i]
		if ok, _, _ := selection.Feasible(j.spec, s.state); !ok || without[s.state.Name] || !j.placement.Judge(s.facts).Accepted {
			continue
		}
		some, candidates = append(some, i), append(candidates, s.prepared)
	}
	counts := j.fleet.census.FleetFor(j.claim.Namespace, j.fleet.now)
	for k, is := range policies.Attain(j.ctx, j.policy, j.claim, candidates, counts) {
		if is == selection.Attained {
			could = append(could, some[k])
		}
	}
	return could
}

// Without is the fleet where servers are kept free for members of gangs: they count as claimed, and for no quota and no spread.
func (f *Fleet) Without(kept map[string]*v1alpha1.ServerClaim) *Fleet {
	after := f.bindAll(kept)
	after.heldIn, after.holders = f.heldIn, f.holders
	return after
}
