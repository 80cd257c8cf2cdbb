// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"maps"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// shortage is what became of the search for servers that did not find one for every member.
type shortage struct {
	// found is for how many members there is a server, also those that had one before.
	found int
	// everyone are the members, steps what was decided for each.
	everyone []asking
	steps    []step
	// wanted are the servers that were found, by member; nil for none. given are those that members had when the steps were decided.
	wanted, given []*index.Entry
	// failed is why the policy could not be asked about the servers that members may have, unknown why it says nothing of some; empty
	// where it says something of all.
	failed, unknown string
}

// words are what each member is told: how many members can have servers, why none are kept for them, and what keeps the others of the
// fleet from it.
func (r *run) words(ctx context.Context, s *shortage, key gangKey, size int, why string) []step {
	short, kept := len(s.steps)-s.found, len(r.s.gangs[key].kept)
	text := fmt.Sprintf("gang %q: servers for %d of its %d members can be had now, %d short; ", key.name, size-short, size, short)
	if kept > 0 {
		text += fmt.Sprintf("%d are kept free for it and count as claimed; ", kept)
	}
	if why != "" {
		text += why + "; "
	}
	if s.unknown != "" {
		text += "of some servers nobody knows whether it may have them: " + s.unknown + "; "
	}
	all, known := make([]step, len(s.steps)), map[int]*choice{}
	tellers := r.v.tellers(s)
	for i, todo := range s.steps {
		switch {
		case todo.action == refuse && !todo.count:
			all[i] = todo
			continue
		case s.failed != "": // how many could be had is not known
			all[i] = refusal(v1alpha1.ReasonGuardError, s.failed)
			all[i].follows = true
			continue
		}
		at := tellers[i]
		if known[at] == nil {
			known[at] = r.v.countShort(ctx, s, at, kept > 0)
		}
		c := known[at]
		all[i] = step{action: refuse, count: true, spec: s.everyone[i].spec, rejected: c.rejected, misplaced: c.misplaced, unjudged: c.unjudged,
			follows: todo.follows, gang: text}
	}
	return all
}

// tellers are, for each member, the one whose step tells what keeps servers from all that ask for the same: the first of them that is
// left without one, else the first of them.
func (v *view) tellers(s *shortage) []int {
	asks, first, without := make([]string, len(s.steps)), map[string]int{}, map[string]int{}
	for i, a := range s.everyone {
		if a.class == nil {
			continue
		}
		asks[i] = a.class.key
		if t, ok := v.policy.(telling); ok {
			claim := policies.SelectionClaimOf(a.claim)
			claim.Priority = a.priority
			asks[i] += "\x00" + t.Asks(claim)
		}
		among := first
		if s.given[i] == nil {
			among = without
		}
		if _, known := among[asks[i]]; !known && (s.steps[i].action == refuse || s.steps[i].action == bind) {
			among[asks[i]] = i
		}
	}
	tellers := make([]int, len(s.steps))
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

// countShort counts by code what keeps servers from a member. Those that were given to members before it are free, and count under
// CodeGang if it could have them; so do the others that it could have. What is kept for the gang counts as claimed.
func (v *view) countShort(ctx context.Context, s *shortage, member int, kept bool) *choice {
	a, todo := s.everyone[member], s.steps[member]
	c := &choice{rejected: maps.Clone(todo.rejected), misplaced: maps.Clone(todo.misplaced), unjudged: todo.unjudged}
	if todo.choice != nil {
		c.rejected, c.misplaced, c.unjudged = maps.Clone(todo.choice.rejected), maps.Clone(todo.choice.misplaced), todo.choice.unjudged
		if !kept {
			c.allowed = todo.choice.allowed
		}
	}
	before := &fits{}
	for _, e := range s.given[:member] {
		if e != nil {
			if e = v.fleet.Free(e.Name(), a.spec); e != nil {
				before.entries, before.candidates = append(before.entries, e), append(before.candidates, e.Candidate())
			}
		}
	}
	if len(before.entries) > 0 && v.policy != nil && a.class != nil {
		c.add(v.judgeAll(ctx, a, before))
	}
	if c.misplaced == nil {
		c.misplaced = map[string]int{}
	}
	if c.allowed > 0 {
		c.misplaced[placement.CodeGang] = c.allowed
	}
	return c
}

// judgeAll counts some servers for a claim, of every alternative.
func (v *view) judgeAll(ctx context.Context, a asking, some *fits) *choice {
	claim := policies.SelectionClaimOf(a.claim)
	claim.Priority = a.priority
	all := &choice{rejected: map[string]int{}}
	allowed := 0
	for _, group := range v.groupsOf(a.placed, some, v.headroomOf(ctx, a), all) {
		if len(group) > 0 {
			v.ask(ctx, claim, group, all, false)
			allowed += all.allowed
		}
	}
	all.allowed = allowed
	return all
}

// add adds the counts of other servers.
func (c *choice) add(o *choice) {
	c.allowed, c.unjudged = c.allowed+o.allowed, c.unjudged+o.unjudged
	c.rejected, c.misplaced = sum(c.rejected, o.rejected), sum(c.misplaced, o.misplaced)
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
