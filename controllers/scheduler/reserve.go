// SPDX-License-Identifier: Apache-2.0

package scheduler

import "context"

// reserve begins with the best server that can still be had. Where none of the list can, the policy is asked once more, and so it is
// each time that the claim waited for bindings on which its spread depends.
func (r *run) reserve(ctx context.Context, a asking, todo step) {
	for asked := false; ; {
		t := &attempt{asking: a, todo: todo, at: todo.choice.head}
		if r.next(ctx, t) {
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
		case !asked:
			asked = true
		case !r.s.patience.anew(a.claim.UID, r.s.now()):
			r.later(a)
			return
		}
		if todo = r.v.decide(ctx, a, true); todo.action != bind {
			r.carryOutOrRefuse(ctx, a, todo)
			return
		}
	}
}

// next assumes for the claim the best server of the list that can still be had. One that changed since the policy looked at it
// is left out, and so is a write that came to nothing, until it is due again. While bindings are under way it stops at a server that
// the claim's spread may come to allow or not; else it passes over that.
func (r *run) next(ctx context.Context, t *attempt) bool {
	ranked, room := t.todo.choice.ranked, r.v.headroomOf(ctx, t.asking)
	t.contended = 0
	for ; t.at < len(ranked); t.at++ {
		e := r.s.fleet.Free(ranked[t.at].Name, t.spec)
		if e == nil || t.failed[e.Name()] || r.s.patience.spent(t.claim, e) {
			continue
		}
		now, surely := room.allowsServer(e)
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

// another goes on with the next server of the list after a write came to nothing. Where none of the list is left, or the policy follows
// the counts of the fleet, which others may have changed meanwhile, it is asked anew, and what was tried is left out.
func (r *run) another(ctx context.Context, t *attempt) bool {
	if t.failed == nil {
		t.failed = map[string]bool{}
	}
	t.failed[t.entry.Name()], t.contended = true, 0
	if len(t.failed) >= maxTries {
		return false
	}
	if !r.v.isStale(t.todo.choice) && r.next(ctx, t) {
		return true
	}
	todo := r.v.pick(ctx, t.asking, true)
	if todo.action != bind {
		return false
	}
	t.todo, t.at = todo, todo.choice.head
	return r.next(ctx, t)
}
