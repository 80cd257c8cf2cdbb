// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/index"
)

// MaxSteps bounds the search for the servers of one gang, in the units of a placement's cost, of which a hundred million take about a
// second. It is counted, and not measured, so that what a gang gets does not depend on what else the machine does.
const MaxSteps = 100_000_000

// gang decides on the members of a gang that name no server.
func (s *solver) gang(some []*claims.Claim) []Result {
	if all := s.barredGang(some); all != nil {
		return all
	}
	s.want.Forbids = nil // no member is forbidden
	picks, short := s.search(some)
	if short != nil {
		s.takeBack()
		return s.refuseShort(some, short)
	}
	s.keepGiven()
	all := make([]Result, len(picks))
	for i, p := range picks {
		all[i] = p.Result
	}
	return all
}

// barredGang refuses the members of a gang for which no servers would do; nil otherwise.
func (s *solver) barredGang(some []*claims.Claim) []Result {
	name, members := some[0].GangName(), s.membersOf(some)
	if reason, why := s.assembled(some[0], members); why != "" {
		return refuseAll(some, refused(nil, reason, fmt.Sprintf("gang %q: %s", name, why)))
	}
	if all := s.forbiddenGang(some, len(members)); all != nil {
		return all
	}
	more := 0
	for _, c := range some {
		if _, has := s.Written(c); !has {
			more++
		}
	}
	if p, over := s.exceeds(some[0], more); over {
		return refuseAll(some, p)
	}
	return nil
}

// forbiddenGang refuses the members of a gang where the rules forbid one of them.
func (s *solver) forbiddenGang(some []*claims.Claim, members int) []Result {
	if s.want.Forbids == nil {
		return nil
	}
	own := map[int]pick{}
	for i, c := range some {
		if c.Invalid != "" || c.Unplaced != "" {
			continue
		}
		if reason, message := s.want.Forbids(c); message != "" {
			own[i] = refused(c, reason, message).following()
		}
	}
	if len(own) == 0 {
		return nil
	}
	all := refuseAll(some, refused(nil, ReasonGangWaiting, fmt.Sprintf("gang %q: the policy forbids %d of its %d members; "+
		"none of them gets a server until that is mended", some[0].GangName(), len(own), members)).following())
	for i, p := range own {
		all[i] = p.Result
	}
	return all
}

func refuseAll(some []*claims.Claim, p pick) []Result {
	all := make([]Result, len(some))
	for i, c := range some {
		all[i] = p.Result
		all[i].Claim = c
	}
	return all
}

// membersOf are the claims that count as members of a gang, some of them given.
func (s *Snapshot) membersOf(some []*claims.Claim) []*claims.Claim {
	all := slices.Clone(some)
	for _, c := range s.claimsIn(some[0].Namespace) {
		if c.CountsAsMember() && c.GangName() == some[0].GangName() &&
			!slices.ContainsFunc(some, func(o *claims.Claim) bool { return o.Name == c.Name }) {
			all = append(all, c)
		}
	}
	return all
}

// assembled says why a gang cannot be given servers of any fleet; empty where it can.
func (s *Snapshot) assembled(one *claims.Claim, members []*claims.Claim) (reason, why string) {
	sizes, lost := make([]int64, len(members)), 0
	for i, c := range members {
		sizes[i] = c.Gang().Size
		if c.ServerRef == "" {
			continue
		}
		if e := s.Fleet.Get(c.ServerRef); e == nil || !e.Holder.Has(e.Name(), c) {
			lost++
		}
	}
	return claims.Assembled(s.Quota, one.Namespace, sizes, lost)
}

// Missing says what keeps the gang of some claims from coming together before servers are looked for: members that are missing, that
// contradict each other, or that lost their server, or more of them than the quota ever allows, or than the fleet has servers. It is
// empty where there is no gang, or all of it is there.
func Missing(s *Snapshot, some []*claims.Claim) string {
	own := some[0].Gang()
	if own == nil {
		return ""
	}
	if _, why := s.assembled(some[0], s.membersOf(some)); why != "" {
		return why
	}
	if n := s.Fleet.Len(); own.Size > int64(n) {
		return fmt.Sprintf("it takes %d servers, and the whole fleet, free or not, has %d; "+
			"its members wait until there are more or the gang is smaller", own.Size, n)
	}
	return ""
}

// shortage is what became of a search that did not find a server for every member.
type shortage struct {
	// picks are those of the first try, by member; found is for how many members there is a server at best.
	picks []pick
	found int
	// failed is why the policy could not be asked, unknown why it says nothing of some servers; empty where it says something of all.
	failed, unknown string
	// limited: the search ended at its limit.
	limited bool
}

// search gives a server to each member, or to none. The members choose one after the other first, so that each gets the best for it.
// A gang without spread is then matched to all that its members may have, which is exact if the policy does not follow the fleet's
// counts. A gang with spread waits: that is exact too for members that ask for the same.
func (s *solver) search(some []*claims.Claim) ([]pick, *shortage) {
	most := s.Cache.work + cmp.Or(s.want.Steps, MaxSteps)
	picks, limited := s.inTurn(some, most)
	short := &shortage{picks: picks, limited: limited, found: found(picks)}
	if short.found == len(some) && !limited {
		return picks, nil
	}
	s.takeBack()
	if limited || s.Policy == nil {
		return nil, short
	}
	if slices.ContainsFunc(some, func(c *claims.Claim) bool { return c.Placement.Spread() != nil }) {
		short.explain(picks)
		return nil, short
	}
	m := &match{solver: s, some: some, opinions: map[string]opinion{}, lists: map[string][]*index.Entry{}}
	if short.limited = m.begin(most); short.limited {
		return nil, short
	}
	short.failed, short.unknown = m.failed, m.unknown
	if picks = m.take(); found(picks) == len(some) {
		return picks, nil
	}
	short.found = max(short.found, found(picks))
	s.takeBack()
	return nil, short
}

// explain takes from the members without a server why the policy could not be asked, and why it says nothing of some servers.
func (h *shortage) explain(picks []pick) {
	for _, p := range picks {
		if p.Refusal.Reason == ReasonGuardError {
			h.failed = cmp.Or(h.failed, p.Refusal.Message)
		}
		h.unknown = cmp.Or(h.unknown, p.Refusal.Unknown)
	}
}

func found(picks []pick) (n int) {
	for _, p := range picks {
		if p.Claim != nil && p.has() {
			n++
		}
	}
	return n
}

// inTurn has members choose one after the other, and ends at the limit.
func (s *solver) inTurn(some []*claims.Claim, most int64) (picks []pick, limited bool) {
	picks = make([]pick, len(some))
	for i, c := range some {
		if s.Cache.work > most {
			return picks, true
		}
		if written, has := s.Written(c); has {
			picks[i] = pick{Result: written}
			continue
		}
		if picks[i] = s.choose(c); picks[i].Entry != nil {
			s.give(picks[i].Entry, c)
		}
	}
	return picks, false
}
