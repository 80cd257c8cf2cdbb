// SPDX-License-Identifier: Apache-2.0

package scheduler

import "context"

// reserve begins with the best server that can still be had. Where none of the list can, the policy is asked once more.
func (r *run) reserve(ctx context.Context, a asking, todo step) {
	t := &attempt{asking: a, todo: todo, at: todo.choice.head}
	if r.take(ctx, t) {
		r.start(ctx, t)
		return
	}
	if r.stopped {
		r.s.pending.wake(a.claim.UID)
		return
	}
	if todo = r.v.decide(ctx, a, true); todo.action == refuse {
		r.refuse(a, todo)
		return
	}
	t = &attempt{asking: a, todo: todo, at: todo.choice.head}
	if !r.take(ctx, t) {
		r.later(a)
		return
	}
	r.start(ctx, t)
}

// take is next for a claim at its turn. Where its spread depends on what becomes of bindings that are under way it waits for them.
func (r *run) take(ctx context.Context, t *attempt) bool {
	for !r.next(t) {
		if !t.contended || r.stopped || ctx.Err() != nil {
			return false
		}
		r.collect(ctx)
		t.at = t.todo.choice.head
	}
	return true
}

// next assumes for the claim the best server of the list that can still be had. One that changed since the policy looked at it
// is left out, and so is a write that came to nothing, until it is due again. It stops at one that the claim's spread may come to
// allow or not.
func (r *run) next(t *attempt) bool {
	ranked, room := t.todo.choice.ranked, r.v.headroomOf(t.asking)
	t.contended = false
	for ; t.at < len(ranked); t.at++ {
		e := r.s.fleet.Free(ranked[t.at].Name, t.spec)
		if e == nil || r.s.patience.holds(t.claim, e, r.s.now()) {
			continue
		}
		now, surely := room.allows(e)
		if now && !surely && r.flying > 0 {
			t.contended = true
			return false
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
