// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"

	"github.com/metalaw/metalaw/engine/placement"
)

// reserve begins with the best server that can still be had. Where none of the list can, the policy is asked once more, and so it is
// each time that the claim waited for bindings on which its spread depends.
func (r *run) reserve(ctx context.Context, a asking, todo step) {
	for asked := false; ; {
		t := &attempt{asking: a, todo: todo, at: todo.choice.head}
		if r.next(t) {
			r.start(ctx, t)
			return
		}
		switch {
		case t.contended > 0 && r.flying > 0:
			r.collect(ctx)
			if r.stopped || ctx.Err() != nil {
				r.s.pending.wake(a.claim.UID)
				return
			}
		case t.contended > 0:
			r.refuse(a, t.crowded())
			return
		case asked:
			r.later(a)
			return
		default:
			asked = true
		}
		if todo = r.v.decide(ctx, a, true); todo.action != bind {
			r.carryOutOrRefuse(ctx, a, todo)
			return
		}
	}
}

// crowded refuses a claim for which the spread leaves no server, in what is kept for a gang or not yet known.
func (t *attempt) crowded() step {
	c := t.todo.choice
	misplaced := map[string]int{placement.CodeSpread: t.contended}
	for code, n := range c.misplaced {
		misplaced[code] += n
	}
	return step{action: refuse, count: true, spec: t.spec, rejected: c.rejected, misplaced: misplaced, follows: true}
}

// next assumes for the claim the best server of the list that can still be had. One that changed since the policy looked at it
// is left out, and so is a write that came to nothing, until it is due again. While bindings are under way it stops at a server that
// the claim's spread may come to allow or not; else it passes over that.
func (r *run) next(t *attempt) bool {
	ranked, room := t.todo.choice.ranked, r.v.headroomOf(t.asking)
	t.contended = 0
	for ; t.at < len(ranked); t.at++ {
		e := r.s.fleet.Free(ranked[t.at].Name, t.spec)
		if e == nil || t.failed[e.Name()] || r.s.patience.holds(t.claim, e, r.s.now()) {
			continue
		}
		now, surely := room.allows(e)
		if now && !surely {
			t.contended++
			if r.flying > 0 {
				return false
			}
		}
		if !surely {
			continue
		}
		e, ok := r.s.fleet.Assume(e.Name(), t.spec, t.claim.UID, t.claim.Namespace)
		if !ok {
			continue
		}
		if e.Since() > t.todo.choice.sequence {
			r.s.fleet.Release(e.Name(), t.claim.UID)
			continue
		}
		t.entry, t.rank, t.score = e, t.at-t.todo.choice.head, ranked[t.at].Score
		r.v.taken = append(r.v.taken, e.Number())
		t.others = t.todo.choice.allowed - 1 - t.todo.choice.head
		t.at++
		return true
	}
	return false
}

// another goes on with the next server of the list after a write came to nothing. Where the policy follows the counts of the fleet,
// which others may have changed meanwhile, it is asked anew, and what was tried is left out.
func (r *run) another(ctx context.Context, t *attempt) bool {
	if t.failed == nil {
		t.failed = map[string]bool{}
	}
	t.failed[t.entry.Name()] = true
	if r.v.isStale(t.todo.choice) {
		todo := r.v.pick(ctx, t.asking, true)
		if todo.action != bind {
			return false
		}
		t.todo, t.at = todo, todo.choice.head
	}
	return r.next(t)
}
