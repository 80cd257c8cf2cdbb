// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"context"
	"fmt"
	"maps"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/placement"
)

// tellShort refuses each member of a gang that is short of servers: with how many members can have servers, and what keeps the others of
// the fleet from it.
func (s *Snapshot) tellShort(ctx context.Context, some []*claims.Claim, short *shortage) []Result {
	size := len(s.membersOf(some))
	if short.limited {
		all := refuseAll(some, refused(nil, ReasonGangWaiting, fmt.Sprintf("gang %q: the search for servers ended at its step limit; "+
			"it begins anew within a minute; let its members ask for the same, or for less", some[0].GangName())))
		for i := range all {
			all[i].Refusal.Limited = true
		}
		return all
	}
	lacking := len(some) - short.found
	text := fmt.Sprintf("gang %q: servers for %d of its %d members can be had now, %d short; ", some[0].GangName(), size-lacking, size, lacking)
	if short.unknown != "" {
		text += "of some servers nobody knows whether it may have them: " + short.unknown + "; "
	}
	all, known := make([]Result, len(some)), map[int]*ranking{}
	tellers := s.tellers(some, short)
	for i, p := range short.picks {
		all[i] = Result{Claim: some[i], Action: Refuse}
		switch {
		case p.action == Refuse && !p.refusal.Count:
			all[i].Refusal = p.refusal
			continue
		case short.failed != "": // how many could be had is not known
			all[i].Refusal = Refusal{Reason: ReasonGuardError, Message: short.failed, Follows: true}
			continue
		}
		at := tellers[i]
		if known[at] == nil {
			known[at] = s.countShort(ctx, some, short, at)
		}
		r := known[at]
		all[i].Refusal = Refusal{Count: true, Rejected: r.rejected, Misplaced: r.misplaced, Unjudged: r.unjudged,
			Follows: p.refusal.Follows, Gang: text}
	}
	return all
}

// tellers are, for each member, the one whose pick tells what keeps servers from all that ask for the same: the first of them that is
// left without one, else the first of them.
func (s *Snapshot) tellers(some []*claims.Claim, short *shortage) []int {
	asks, first, without := make([]string, len(some)), map[string]int{}, map[string]int{}
	for i, c := range some {
		p := short.picks[i]
		if c.Invalid != "" || c.Unplaced != "" {
			continue
		}
		asks[i] = s.asks(c)
		among := first
		if p.entry == nil {
			among = without
		}
		if _, known := among[asks[i]]; !known && (p.action == Refuse || p.action == Again || p.action == Bind) {
			among[asks[i]] = i
		}
	}
	tellers := make([]int, len(some))
	for i := range tellers {
		tellers[i] = i
		for _, among := range []map[string]int{first, without} {
			if at, is := among[asks[i]]; is {
				tellers[i] = at
			}
		}
	}
	return tellers
}

// asks is equal for claims that get the same servers.
func (s *Snapshot) asks(c *claims.Claim) string {
	if t, ok := s.Policy.(telling); ok {
		return c.Class() + "\x00" + t.Asks(c.Asked)
	}
	return c.Class()
}

// countShort counts by code what keeps servers from a member. Those that were given to members before it are free, and count under
// CodeGang if it could have them; so do the others that it could have.
func (s *Snapshot) countShort(ctx context.Context, some []*claims.Claim, short *shortage, member int) *ranking {
	c, p := some[member], short.picks[member]
	r := &ranking{rejected: maps.Clone(p.refusal.Rejected), misplaced: maps.Clone(p.refusal.Misplaced), unjudged: p.refusal.Unjudged}
	if p.from != nil {
		r.rejected, r.misplaced, r.unjudged = maps.Clone(p.from.rejected), maps.Clone(p.from.misplaced), p.from.unjudged
		r.allowed = p.from.allowed
	}
	before := &feasible{}
	for _, other := range short.picks[:member] {
		if other.entry == nil {
			continue
		}
		if e := s.Fleet.Free(other.entry.Name(), c.Spec); e != nil {
			before.entries, before.candidates = append(before.entries, e), append(before.candidates, e.Candidate())
		}
	}
	if len(before.entries) > 0 && s.Policy != nil && c.Invalid == "" && c.Unplaced == "" {
		r.add(s.judgeAll(ctx, c, before))
	}
	if r.misplaced == nil {
		r.misplaced = map[string]int{}
	}
	if r.allowed > 0 {
		r.misplaced[placement.CodeGang] = r.allowed
	}
	return r
}

// judgeAll counts some servers for a claim, of every alternative.
func (s *Snapshot) judgeAll(ctx context.Context, c *claims.Claim, some *feasible) *ranking {
	all := &ranking{rejected: map[string]int{}}
	allowed := 0
	for _, group := range s.groupsOf(ctx, c, some, all) {
		if len(group) > 0 {
			s.ask(ctx, c.Asked, group, all, false)
			allowed += all.allowed
		}
	}
	all.allowed = allowed
	return all
}

// add adds the counts of other servers.
func (r *ranking) add(o *ranking) {
	r.allowed, r.unjudged = r.allowed+o.allowed, r.unjudged+o.unjudged
	r.rejected, r.misplaced = sum(r.rejected, o.rejected), sum(r.misplaced, o.misplaced)
}

// sum counts by code what both count.
func sum(a, b map[string]int) map[string]int {
	both := map[string]int{}
	for _, counts := range []map[string]int{a, b} {
		for code, n := range counts {
			both[code] += n
		}
	}
	return both
}
