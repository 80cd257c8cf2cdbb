// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/scheduler/index"
)

// startGang hands a gang to a worker.
func (r *run) startGang(ctx context.Context, g *gangAttempt) {
	r.flying++
	r.s.launch(func() { r.results <- r.s.carryOutGang(ctx, g) })
}

// carryOutGang is the work of a worker. No member ends while it goes on.
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
					g.done[i] = result{done: inDoubt, err: fmt.Errorf("bind gang %s/%s: panic: %v", g.key.namespace, g.key.name, p)}
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

// reserveGang writes every member on its server. It says whether all are written.
func (s *Scheduler) reserveGang(ctx context.Context, g *gangAttempt) bool {
	for i, t := range g.members {
		if t.todo.action == bind {
			if g.done[i] = s.reserveOnly(ctx, t); g.done[i].done != wasReserved {
				return false
			}
		}
	}
	return true
}

// nameGang writes the servers on the claims, and stops where one cannot be written: the next pass looks at what is there.
func (s *Scheduler) nameGang(ctx context.Context, g *gangAttempt) {
	for i, t := range g.members {
		if g.done[i] = s.nameServer(ctx, t.claim, t.server()); g.done[i].done != wasBound || g.done[i].err != nil {
			return
		}
	}
}

// undoMember takes back a server that is written for a member of a gang, which does not name it. That is looked up uncached: the
// answer to the write that named it may have got lost. A server that changed meanwhile is left as it is.
func (s *Scheduler) undoMember(ctx context.Context, c *v1alpha1.ServerClaim, e *index.Entry) error {
	var live v1alpha1.ServerClaim
	err := s.live.Get(ctx, client.ObjectKeyFromObject(c), &live)
	switch {
	case apierrors.IsNotFound(err) || err == nil && live.UID != c.UID:
		_, err = s.undo(ctx, e)
		return err
	case err != nil:
		return fmt.Errorf("look for claim %s of server %s: %w", claimName(c), e.Name(), err)
	case live.Spec.ServerRef != nil:
		s.pending.wrote(&live)
		return nil
	}
	_, err = s.writeServer(ctx, e, func(server *v1alpha1.Server) error {
		ForgetBinding(server)
		return nil
	})
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("take server %s back from claim %s: %w", e.Name(), claimName(c), err)
	}
	if s.pending.offered(s.fleet.Get(e.Name())) {
		s.freed.Store(true)
	}
	undone.Inc()
	logf.FromContext(ctx).Info("reservation undone", "server", e.Name(), "claim", claimName(c), "claimUID", c.UID)
	return nil
}

// finishGang takes in what became of a gang's writes, and goes on from what is written.
func (r *run) finishGang(ctx context.Context, g *gangAttempt) {
	var failed, denied error
	again := false
	for i, done := range g.done {
		t := g.members[i]
		r.settleMember(t, done.done)
		switch {
		case done.done == wasBound && done.err == nil:
			r.bound++
			r.s.told(ctx, done.claim, done.server)
		case done.done == wasLost:
			r.memberLost(t, done.err)
			denied, again = errors.Join(denied, done.err), true
		case isDenied(done.err):
			r.s.patience.lost(t.claim.UID, r.s.now(), longestDenied)
			r.refuse(t.asking, refusedBy(done.err))
		case done.err != nil:
			failed = errors.Join(failed, done.err)
		}
	}
	r.rewoke = r.s.pending.respread(g.key.namespace) || r.rewoke
	if failed != nil {
		r.fail(g.everyone[0], failed)
		return
	}
	if again && !r.stopped && ctx.Err() == nil {
		r.v.afresh()
		r.tryGang(ctx, g.key, cmpError(g.denied, denied))
	}
}

// settleMember ends what was assumed for a member, or notes a doubt about it.
func (r *run) settleMember(t *attempt, done outcome) {
	switch {
	case t.todo.action != bind:
	case done == inDoubt:
		r.s.unsure(t.claim.UID, t.entry.Name())
	default:
		if e := r.s.fleet.Release(t.entry.Name(), t.claim.UID); e != nil && e.IsFree() {
			r.returned = append(r.returned, e)
		}
	}
	if done == wasReserved || done == wasDropped {
		r.s.suspects.add(t.server())
	}
}

// memberLost spaces the next attempt of a member whose server could not be written; denied is the API server's refusal, if any.
func (r *run) memberLost(t *attempt, denied error) {
	r.s.patience.tried(t.claim, t.entry)
	wait := longestWait
	if denied != nil {
		wait = longestDenied
	}
	r.s.patience.lost(t.claim.UID, r.s.now(), wait)
}

func cmpError(first, second error) error {
	if first != nil {
		return first
	}
	return second
}
