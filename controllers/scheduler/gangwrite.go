// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalaw/metalaw/engine/claims/solve"
)

// startGang hands a gang to a worker.
func (r *cycle) startGang(ctx context.Context, g *gangAttempt) {
	r.flying++
	r.s.launch(func() { r.results <- r.s.carryOutGang(ctx, g) })
}

// carryOutGang is the work of a worker, which has others help it with the writes. No member ends while it goes on.
func (s *Scheduler) carryOutGang(ctx context.Context, g *gangAttempt) (done result) {
	g.done = make([]result, len(g.members))
	uids := make([]types.UID, len(g.members))
	for i, t := range g.members {
		g.done[i].done, uids[i] = wasDropped, t.claim.UID
	}
	defer func() {
		if p := recover(); p != nil {
			for i := range g.done {
				if g.done[i].done != wasBound {
					g.done[i] = g.panicked(p)
				}
			}
		}
		done = result{gang: g}
	}()
	_, _ = s.guard.bindAll(uids, func() error {
		for _, t := range g.members {
			if current, _ := s.pending.get(t.claim.UID); current == nil {
				return nil // it went, or ends, while the pass was under way
			}
		}
		if s.reserveGang(ctx, g) {
			s.nameGang(ctx, g)
		}
		return nil
	})
	return done
}

// reserveGang writes every member on its server, several at a time. It says whether all are written. Once one could not be, none is
// begun any more, and those that are under way by then are awaited.
func (s *Scheduler) reserveGang(ctx context.Context, g *gangAttempt) bool {
	var all []int
	for i, t := range g.members {
		if t.todo.Action == solve.Bind {
			all = append(all, i)
		}
	}
	return s.writeMembers(g, all, func(i int) bool {
		g.done[i] = s.reserveOnly(ctx, g.members[i])
		return g.done[i].done == wasReserved
	})
}

// nameGang writes the servers on the claims. The first that is written is the commit: where it cannot be, no other is tried, and the
// next pass looks at what is there. From then on the others follow several at a time, and one that is refused keeps no other from its
// server.
func (s *Scheduler) nameGang(ctx context.Context, g *gangAttempt) {
	name := func(i int) (goOn bool) {
		g.done[i] = s.nameServer(ctx, g.members[i].claim, g.members[i].server())
		return !isUnanswered(g.done[i].err)
	}
	rest := make([]int, len(g.members))
	for i := range rest {
		rest[i] = i
	}
	if !g.committed {
		goOn := name(0)
		g.committed = g.done[0].done == wasBound && g.done[0].err == nil
		if !g.committed || !goOn {
			return
		}
		rest = rest[1:]
	}
	s.writeMembers(g, rest, name)
}

// writeMembers makes a write for each of some members, several at a time. It says whether all were made and went well.
func (s *Scheduler) writeMembers(g *gangAttempt, some []int, write func(member int) (goOn bool)) bool {
	return s.each(len(some), func(i int) bool { return write(some[i]) }, func(i int, p any) { g.done[some[i]] = g.panicked(p) })
}

// panicked is what became of a member's write that ended in a panic: nobody knows.
func (g *gangAttempt) panicked(p any) result {
	return result{done: inDoubt, err: fmt.Errorf("bind gang %s/%s: panic: %v", g.key.namespace, g.key.name, p)}
}

// finishGang takes in what became of a gang's writes, and goes on from what is written.
func (r *cycle) finishGang(ctx context.Context, g *gangAttempt) {
	var failed, denied error
	again := false
	for i, done := range g.done {
		t := g.members[i]
		r.settleMember(t, done.done)
		if done.done == wasReserved && isUnanswered(done.err) {
			r.s.uncertain.note(t.claim.UID, func(u *uncertainWrite) { u.named = r.s.now() })
		}
		switch {
		case done.done == wasBound && done.err == nil:
			r.bound++
			r.s.told(ctx, done.claim, done.server)
		case done.done == wasLost:
			r.memberLost(t, done.err)
			denied, again = errors.Join(denied, done.err), true
		case isDenied(done.err):
			r.s.backoff.lost(t.claim.UID, r.s.now(), longestDenied)
			r.refuse(t.pendingClaim, refusedBy(done.err))
		case done.err != nil:
			failed = errors.Join(failed, done.err)
		}
	}
	r.rewoke = r.s.pending.respread(g.key.namespace, g.uids()...) || r.rewoke
	if failed != nil {
		for _, a := range g.everyone { // those that have their server by now do not bring the others with them
			r.s.pending.wake(a.claim.UID)
		}
		r.fail(g.everyone[0], failed)
		return
	}
	if again && ctx.Err() == nil {
		r.gangAgain(ctx, g, denied)
	}
}

// gangAgain looks for other servers, where some could not be written.
func (r *cycle) gangAgain(ctx context.Context, g *gangAttempt, denied error) {
	if !r.stopped {
		r.snapshot.Forget()
		r.tryGang(ctx, g.key, cmp.Or(g.denied, denied))
	}
}

// uids are those of the members that are written.
func (g *gangAttempt) uids() []types.UID {
	all := make([]types.UID, len(g.members))
	for i, t := range g.members {
		all[i] = t.claim.UID
	}
	return all
}

// settleMember ends what was assumed for a member, or notes a doubt about it.
func (r *cycle) settleMember(t *bindAttempt, done outcome) {
	switch {
	case t.todo.Action != solve.Bind:
	case done == inDoubt:
		r.s.unsure(t.claim.UID, t.entry.Name())
	default:
		if e := r.s.fleet.Release(t.entry.Name(), t.claim.UID); e != nil && e.IsFree() {
			r.returned = append(r.returned, e)
		}
	}
	if done == wasReserved || done == wasDropped {
		r.s.uncertain.suspect(t.server())
	}
}

// memberLost spaces the next attempt of a member whose server could not be written; denied is the API server's refusal, if any.
func (r *cycle) memberLost(t *bindAttempt, denied error) {
	r.s.backoff.tried(t.claim, t.entry)
	wait := longestWait
	if denied != nil {
		wait = longestDenied
	}
	r.s.backoff.lost(t.claim.UID, r.s.now(), wait)
}
