// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"fmt"
	"maps"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/index"
	"github.com/metalaw/metalaw/engine/placement"
)

// refuseShort refuses each member of a gang that is short of servers: with how many members can have servers, and what keeps the others of
// the fleet from it.
func (s *solver) refuseShort(some []*claims.Claim, short *shortage) []Result {
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
		text += "of some servers it is not known whether it may have them: " + short.unknown + "; "
	}
	all, known := make([]Result, len(some)), map[int]*ranking{}
	models := s.modelsOf(some, short.picks)
	for i, p := range short.picks {
		all[i] = Result{Claim: some[i], Action: Refuse}
		switch {
		case p.Action == Refuse && !p.Refusal.Count:
			all[i].Refusal = p.Refusal
			continue
		case short.failed != "": // how many could be had is not known
			all[i].Refusal = Refusal{Reason: ReasonGuardError, Message: short.failed, Follows: true}
			continue
		}
		at := models[i]
		if known[at] == nil {
			known[at] = s.countShort(some, short, at)
		}
		r := known[at]
		all[i].Refusal = Refusal{Count: true, Rejected: r.rejected, Misplaced: r.misplaced, Unjudged: r.unjudged,
			Follows: p.Refusal.Follows, Gang: text}
	}
	return all
}

// modelsOf are, for each member, the one whose pick says what keeps servers from all that ask for the same: the first of them that is left
// without one, else the first of them.
func (s *solver) modelsOf(some []*claims.Claim, picks []pick) []int {
	first, without := map[string]int{}, map[string]int{}
	asks := make([]string, len(some))
	for i, c := range some {
		if c.Invalid != "" || c.Unplaced != "" {
			continue
		}
		p, among := picks[i], first
		if p.Entry == nil {
			among = without
		}
		asks[i] = AskKey(s.Policy, c)
		if _, known := among[asks[i]]; !known && (p.Entry != nil || !p.has()) { // the others have what is written for them
			among[asks[i]] = i
		}
	}
	models := make([]int, len(some))
	for i := range models {
		models[i] = i
		for _, among := range []map[string]int{first, without} {
			if at, is := among[asks[i]]; is {
				models[i] = at
			}
		}
	}
	return models
}

// countShort counts by code what keeps servers from a member. Those that were given to members before it are free, and count under
// CodeGang if it could have them; so do the others that it could have.
func (s *solver) countShort(some []*claims.Claim, short *shortage, member int) *ranking {
	c, p := some[member], short.picks[member]
	r := &ranking{rejected: maps.Clone(p.Refusal.Rejected), misplaced: maps.Clone(p.Refusal.Misplaced), unjudged: p.Refusal.Unjudged}
	if p.from != nil {
		r.rejected, r.misplaced, r.unjudged = maps.Clone(p.from.rejected), maps.Clone(p.from.misplaced), p.from.unjudged
		r.allowed = p.from.allowed
	}
	var before []*index.Entry
	for _, other := range short.picks[:member] {
		if other.Entry != nil {
			if e := s.Fleet.Free(other.Entry.Name(), c.Spec); e != nil {
				before = append(before, e)
			}
		}
	}
	if len(before) > 0 && s.Policy != nil && c.Invalid == "" && c.Unplaced == "" {
		r.add(s.judgeAll(c, feasibleOf(before)))
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
func (s *solver) judgeAll(c *claims.Claim, some *feasible) *ranking {
	all := &ranking{rejected: map[string]int{}}
	allowed := 0
	for _, group := range s.groupsOf(c, some, all) {
		if len(group) > 0 {
			s.ask(c.Asked, group, all, false)
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

// sum counts by code what all of them count.
func sum(all ...map[string]int) map[string]int {
	total := map[string]int{}
	for _, counts := range all {
		for code, n := range counts {
			total[code] += n
		}
	}
	return total
}
