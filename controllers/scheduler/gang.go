// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/solve"
)

// A gang is served as a whole, at the turn of the first of its members: a server is found and assumed for each of them, one worker
// then writes the servers, and once all are written it names them on the claims. Between the two nothing is booted, because no
// claim names its server. Whatever comes between them leaves servers that are written for members without a server. They are all
// that is remembered of it: the next time that the gang is served they are completed, or where that cannot be done now, taken back.
// The first member that names its server is the commit: it may boot, and so every member gets what is reserved for it from then on,
// whatever becomes of the others.

// gangAttempt is what is being written for a gang.
type gangAttempt struct {
	key     gangKey
	members []*bindAttempt
	done    []result
	// everyone are the members that are open and have no server; denied is what the API server refused so far.
	everyone []pendingClaim
	denied   error
	// committed says that some member names its server: from then on what is reserved is completed.
	committed bool
}

// serveGang does what can be done for a gang, once in a cycle.
func (r *cycle) serveGang(ctx context.Context, key gangKey) {
	if r.gangs[key] {
		return
	}
	r.gangs[key] = true
	if at, is := r.s.limited[key]; is && r.began.Sub(at) < limitedFor {
		return // its members are told already
	}
	_, open := r.s.pending.members(key, r.s.granted(), r.s.now())
	for uid := range open {
		r.s.backoff.anew(uid, r.s.now())
	}
	r.tryGang(ctx, key, nil)
}

// limitedFor is how long a gang waits whose search ended at its limit: such a search takes the loop about a second.
const limitedFor = time.Minute

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

// tryGang looks for servers for a gang, and has them written where there is one for each member.
func (r *cycle) tryGang(ctx context.Context, key gangKey, denied error) {
	defer func() {
		if p := recover(); p != nil {
			r.gangPanicked(key, p)
		}
	}()
	members, open := r.s.pending.members(key, r.s.granted(), r.s.now())
	var everyone []pendingClaim
	for _, m := range members {
		a, ok := open[m.claim.UID]
		if !ok {
			continue
		}
		if isReady, err := r.s.ready(ctx, a.claim.UID); err != nil || !isReady {
			r.failIf(a, err)
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
	asks := make([]*claims.Claim, len(everyone))
	for i, a := range everyone {
		asks[i] = a.ask
	}
	results := r.solve(ctx, asks, nil)
	if slices.ContainsFunc(results, func(one solve.Result) bool { return one.Action == solve.Refuse }) {
		r.leaveShort(ctx, key, members, everyone, results, denied)
		return
	}
	if r.s.observeOnly {
		r.refuseAll(everyone, refusal(v1alpha1.ReasonObserveOnly, "the manager runs with --observe-only, and binds no claim"))
		return
	}
	g := &gangAttempt{key: key, everyone: everyone, denied: denied, committed: r.anyNamed(members)}
	for i, a := range everyone {
		t, ok := r.take(a, results[i])
		if !ok { // the server changed meanwhile
			r.release(g.members)
			r.later(a)
			return
		}
		g.members = append(g.members, t)
	}
	r.startGang(ctx, g)
}

// release ends what was assumed for members in vain.
func (r *cycle) release(members []*bindAttempt) {
	for _, t := range members {
		if t.entry != nil {
			r.s.fleet.Release(t.entry.Name(), t.claim.UID)
		}
	}
	r.snapshot.Forget()
}

// leaveShort goes on with a gang that gets no servers now.
func (r *cycle) leaveShort(
	ctx context.Context, key gangKey, members []*namespaceClaim, everyone []pendingClaim, results []solve.Result, denied error,
) {
	if results[0].Refusal.Limited {
		r.s.limited[key] = r.began
	}
	left := r.completeOrGiveBack(ctx, key, members, everyone)
	for i, a := range everyone {
		if !slices.ContainsFunc(left, func(l pendingClaim) bool { return l.claim.UID == a.claim.UID }) {
			continue
		}
		r.s.backoff.retry(a.claim.UID, r.s.now())
		why := results[i].Refusal
		if denied != nil && why.Count {
			why = refusedBy(denied)
		}
		r.refuse(a, why)
	}
}

// gangPanicked is panicked for a gang. Nothing stays assumed for members of which nobody writes.
func (r *cycle) gangPanicked(key gangKey, p any) {
	members, open := r.s.pending.members(key, r.s.granted(), r.s.now())
	for server, uid := range r.s.fleet.Assumed() {
		if slices.ContainsFunc(members, func(m *namespaceClaim) bool { return m.claim.UID == uid }) && r.s.uncertain.of(uid).reserved != server {
			r.s.fleet.Release(server, uid)
		}
	}
	r.snapshot.Forget()
	err := fmt.Errorf("decide on gang %s/%s: panic: %v\n%s", key.namespace, key.name, p, debug.Stack())
	for _, a := range open {
		r.fail(a, err)
		err = nil
	}
}

func (r *cycle) refuseAll(members []pendingClaim, why solve.Refusal) {
	for _, a := range members {
		r.refuse(a, why)
	}
}
