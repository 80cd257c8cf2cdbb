// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/policies/index"
)

// A gang is served as a whole, at the turn of the first of its members: a server is found and assumed for each of them, one worker
// then writes the servers, and once all are written it names them on the claims. Between the two nothing is booted, because no
// claim names its server. Whatever comes between them leaves servers that are written for members without a server. They are all
// that is remembered of it: the next time that the gang is served they are completed, or where that cannot be done now, taken back.
// The first member that names its server is the commit: it may boot, and so every member gets what is reserved for it from then on,
// whatever becomes of the others.

const (
	// limitedFor is how long a gang waits whose search ended at its limit: such a search takes the loop about a second.
	limitedFor = time.Minute
	// longestWrite is how long after a write that got no answer it may still arrive: an API server ends a request after a minute.
	longestWrite = time.Minute
)

// serveGang does what can be done for a gang, once in a cycle.
func (r *cycle) serveGang(ctx context.Context, key gangKey) {
	if r.gangs[key] {
		return
	}
	r.gangs[key] = true
	if _, open := r.s.pending.members(key, r.s.claims().Priority, r.s.now()); !r.isLimited(key) {
		for uid := range open {
			r.s.backoff.anew(uid, r.s.now())
		}
	}
	r.tryGang(ctx, key, nil)
}

// isLimited says that a gang waits because its search ended at its limit.
func (r *cycle) isLimited(key gangKey) bool {
	at, is := r.s.limited[key]
	return is && r.began.Sub(at) < limitedFor
}

// wakeLimited has the next cycle look at the gangs that have waited for that long. It returns when to do so for the others; 0 for never.
func (s *Scheduler) wakeLimited(now time.Time) (next time.Duration) {
	for key, at := range s.limited {
		left := limitedFor - now.Sub(at)
		if left > 0 {
			next = trigger.Earlier(next, left)
			continue
		}
		delete(s.limited, key)
		s.pending.wakeGang(key)
	}
	return next
}

// tryGang looks for servers for a gang, and has them written where there is one for each member. After a panic nothing stays assumed.
func (r *cycle) tryGang(ctx context.Context, key gangKey, denied error) {
	t := &bindAttempt{gang: key, denied: denied}
	members, open := r.s.pending.members(key, r.s.claims().Priority, r.s.now())
	defer func() {
		if p := recover(); p != nil {
			r.release(t)
			r.panicked(p, t.name(), slices.Collect(maps.Values(open))...)
		}
	}()
	var everyone []pendingClaim
	for _, m := range members {
		a, ok := open[m.claim.UID]
		if !ok {
			continue
		}
		if !r.ready(ctx, a) {
			return
		}
		if m.claim.Spec.ServerRef == nil {
			everyone = append(everyone, a)
		}
	}
	if len(everyone) == 0 {
		return
	}
	slices.SortFunc(everyone, before)
	if r.isLimited(key) { // its members have their message, but what is reserved for them does not wait
		r.completeOrGiveBack(ctx, key, members, everyone)
		return
	}
	asks := make([]*claims.Claim, len(everyone))
	for i, a := range everyone {
		asks[i] = a.ask
	}
	results := r.solve(ctx, nil, asks...)
	if slices.ContainsFunc(results, func(one solve.Result) bool { return one.Action == solve.Refuse }) {
		r.leaveShort(ctx, key, members, everyone, results, denied)
		return
	}
	if r.s.observeOnly {
		r.refuse(observed, everyone...)
		return
	}
	t.committed = r.anyNamed(members)
	for i, a := range everyone {
		m, ok := r.take(a, results[i])
		if !ok { // the server changed meanwhile
			r.release(t)
			r.later(a)
			return
		}
		t.members = append(t.members, m)
	}
	r.start(ctx, t)
}

// release ends what was assumed for the members of an attempt that was not begun.
func (r *cycle) release(t *bindAttempt) {
	for _, m := range t.members {
		if m.entry != nil {
			r.s.fleet.Release(m.entry.Name(), string(m.claim.UID))
		}
	}
	r.snapshot.Forget()
}

// finishGang goes on from what is written for a gang; where some servers could not be written, it looks for others.
func (r *cycle) finishGang(ctx context.Context, t *bindAttempt, lost []*member, failed error) {
	for _, m := range lost {
		longest := longestWait
		if m.err != nil {
			longest = longestDenied
		}
		r.s.backoff.lost(m.claim.UID, r.s.now(), longest)
	}
	if failed != nil {
		for _, m := range t.members { // those that have their server by now do not bring the others with them
			r.s.pending.wake(m.claim.UID)
		}
		r.fail(t.members[0].pendingClaim, failed)
		return
	}
	if len(lost) > 0 && ctx.Err() == nil && !r.stopped {
		r.snapshot.Forget()
		r.tryGang(ctx, t.gang, t.denied)
	}
}

// leaveShort goes on with a gang that gets no servers now.
func (r *cycle) leaveShort(
	ctx context.Context, key gangKey, members []*namespaceClaim, everyone []pendingClaim, results []solve.Result, denied error,
) {
	if results[0].Refusal.Limited {
		r.s.limited[key] = r.began
	}
	completed := r.completeOrGiveBack(ctx, key, members, everyone)
	for i, a := range everyone {
		if completed[a.claim.UID] {
			continue
		}
		r.s.backoff.retry(a.claim.UID, r.s.now())
		why := results[i].Refusal
		if denied != nil && why.Count {
			why = refusedBy(denied)
		}
		r.refuse(why, a)
	}
}

// completeOrGiveBack goes on with what is reserved for a gang that cannot all have servers now: it is completed where some member names
// its server, and else given back. It returns the members that are being completed, or of which it is not known whether they have to be.
func (r *cycle) completeOrGiveBack(
	ctx context.Context, key gangKey, members []*namespaceClaim, everyone []pendingClaim,
) (completed map[types.UID]bool) {
	t := &bindAttempt{gang: key, committed: true}
	var reserved []pendingClaim
	for _, a := range everyone {
		if e, todo := r.reservedFor(a); e != nil {
			reserved = append(reserved, a)
			t.members = append(t.members, &member{pendingClaim: a, todo: todo})
		}
	}
	if len(reserved) == 0 || r.s.observeOnly {
		return nil
	}
	committed, err := r.committed(ctx, members, reserved)
	switch {
	case err != nil:
		r.fail(reserved[0], err)
	case committed:
		r.start(ctx, t)
	case r.mayArrive(reserved):
		return nil
	default:
		r.giveBack(ctx, reserved)
		return nil
	}
	completed = map[types.UID]bool{}
	for _, a := range reserved {
		completed[a.claim.UID] = true
	}
	return completed
}

// mayArrive says that a write which names a server on some member may still arrive. Then nothing is taken back: the claim would name
// a server that another claim has by then, and the others would have lost theirs. It is looked at again.
func (r *cycle) mayArrive(reserved []pendingClaim) bool {
	now := r.s.now()
	for _, a := range reserved {
		if at := r.s.uncertain.of(a.claim.UID).named; now.Sub(at) < longestWrite {
			r.s.backoff.lost(a.claim.UID, now, longestWait)
			return true
		}
	}
	return false
}

// committed says that some member of a gang names its server. Of those that are not known to, that is looked up uncached: the answer
// to the write that named it may have got lost.
func (r *cycle) committed(ctx context.Context, members []*namespaceClaim, reserved []pendingClaim) (bool, error) {
	if r.anyNamed(members) {
		return true, nil
	}
	for _, a := range reserved {
		var live v1alpha1.ServerClaim
		err := r.s.binder.live.Get(ctx, client.ObjectKeyFromObject(a.claim), &live)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("see whether claim %s names its server: %w", claimName(a.claim), err)
		}
		if e, _ := r.reservedFor(a); err == nil && e != nil && live.UID == a.claim.UID && live.DeletionTimestamp.IsZero() &&
			live.Spec.ServerRef != nil && live.Spec.ServerRef.Name == e.Name() {
			r.s.pending.wrote(&live)
			return true, nil
		}
	}
	return false, nil
}

// anyNamed says that some member of a gang names the server that is written for it.
func (r *cycle) anyNamed(members []*namespaceClaim) bool {
	return slices.ContainsFunc(members, func(m *namespaceClaim) bool {
		e := r.s.fleet.Get(m.ask.ServerRef)
		return e != nil && e.Holder.RelationOf(e.Name(), m.ask) == claims.Holds
	})
}

// giveBack takes back the servers that are written for members which cannot all have one now. Where that cannot be done now, it is
// tried again soon, whatever the message of the claim is meanwhile.
func (r *cycle) giveBack(ctx context.Context, members []pendingClaim) {
	var all []*member
	for _, a := range members {
		if e, todo := r.reservedFor(a); e != nil && !r.s.observeOnly {
			all = append(all, &member{pendingClaim: a, todo: todo, entry: e, done: wasReserved})
		}
	}
	r.s.binder.each(len(all), func(i int) bool {
		var done bool
		if done, all[i].err = r.s.binder.undo(ctx, all[i].entry, true); done {
			all[i].done = wasDropped
		}
		return true
	}, func(i int, p any) {
		all[i].err = fmt.Errorf("take server %s back from claim %s: panic: %v", all[i].server(), claimName(all[i].claim), p)
	})
	for _, m := range all {
		r.snapshot.Forget()
		switch {
		case m.err != nil:
			if !isDenied(m.err) {
				r.s.uncertain.takingBack(m.claim.UID, m.server(), r.s.now())
			}
			r.fail(m.pendingClaim, m.err)
		case m.done != wasDropped:
			r.s.uncertain.suspect(m.server()) // its claim may have gone
			r.s.backoff.lost(m.claim.UID, r.s.now(), longestWait)
		}
	}
}

// reservedFor is the server that is written for a member which does not name it, and for which nothing was booted; else nil.
func (r *cycle) reservedFor(a pendingClaim) (*index.Entry, solve.Result) {
	todo, is := r.snapshot.Written(a.ask)
	if e := r.s.fleet.Get(todo.Server); is && todo.Action == solve.Complete && e != nil && Untouched(index.Server(e)) {
		return e, todo
	}
	return nil, todo
}
