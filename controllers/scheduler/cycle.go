// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// cycle is one pass under way. Its decisions are made one by one, by the loop alone; only what a worker writes goes on meanwhile.
// A server that is being written for a claim is assumed to be the claim's, and so the next decision sees it as taken.
type cycle struct {
	s        *Scheduler
	snapshot *solve.Snapshot
	revision engine.Revision
	rules    policies.Rules
	began    time.Time
	// results are handed back by the workers; flying is how many of them are at work.
	results chan result
	flying  int
	// left are the claims without a server; passed those that no server was left for and whose message can wait.
	left   []refused
	passed []pendingClaim
	// returned are servers that were assumed for a claim in vain.
	returned []*index.Entry
	bound    int
	// rewoke says that there is more to do, of which nothing from outside will tell.
	rewoke bool
	failed error
	// gangs are those that were served, or are being written.
	gangs map[gangKey]bool
	// stopped says that no API server answers: the other claims would only wait for it as well.
	stopped bool
}

// bindAttempt is a decision for one claim that is being carried out.
type bindAttempt struct {
	pendingClaim
	todo     solve.Result
	revision engine.Revision
	// entry is the server that it is about, in the version that was decided on; nil for one that only has to be named.
	entry  *index.Entry
	denied error
	lost   bool
	// failed are the servers of which a write came to nothing for this claim in this cycle.
	failed map[string]bool
}

// server is the name of the one that the attempt is about.
func (t *bindAttempt) server() string {
	if t.entry != nil {
		return t.entry.Name()
	}
	return t.todo.Server
}

// result is what a worker hands back. claim and server are set where they name each other now.
type result struct {
	*bindAttempt
	// gang is set where the result is that of a whole gang, instead of bindAttempt.
	gang   *gangAttempt
	done   outcome
	err    error
	claim  *v1alpha1.ServerClaim
	server string
}

// serveAll serves claims in order, and returns once all that is written for them is. Should it end in a panic, what the workers do is
// taken in all the same, and the next pass looks at the claims again.
func (r *cycle) serveAll(ctx context.Context, due []pendingClaim) {
	whole := false
	defer func() {
		if whole {
			return
		}
		r.stopped = true
		for r.flying > 0 {
			r.collect(ctx)
		}
		for _, a := range due {
			r.s.pending.wake(a.claim.UID)
		}
	}()
	for _, a := range due {
		for r.flying > 0 && (r.flying >= maxWriters || len(r.results) > 0) {
			r.collect(ctx)
		}
		if r.stopped || ctx.Err() != nil {
			r.s.pending.wake(a.claim.UID)
			continue
		}
		r.serve(ctx, a)
	}
	for r.flying > 0 {
		r.collect(ctx)
	}
	whole = true
}

// panicked notes a panic over one claim: what cannot be decided for it is no reason to leave out the others.
func (r *cycle) panicked(a pendingClaim, p any) {
	r.fail(a, fmt.Errorf("decide on claim %s: panic: %v\n%s", claimName(a.claim), p, debug.Stack()))
}

// serve does what can be done for one claim: it decides, and has the first write begun.
func (r *cycle) serve(ctx context.Context, a pendingClaim) {
	defer func() {
		if p := recover(); p != nil {
			r.panicked(a, p)
		}
	}()
	if a.ask.Gang() != nil && a.claim.Spec.ServerRef == nil {
		r.serveGang(ctx, gangKey{a.claim.Namespace, a.ask.Gang().Name})
		return
	}
	if isReady, err := r.s.ready(ctx, a.claim.UID); err != nil || !isReady {
		r.failIf(a, err)
		return
	}
	if a.offered && a.class != nil && r.snapshot.Exhausted(a.ask) {
		r.passed = append(r.passed, a)
		return
	}
	r.carryOutOrRefuse(ctx, a, r.one(ctx, a, nil))
}

// carryOutOrRefuse does what was decided for a claim.
func (r *cycle) carryOutOrRefuse(ctx context.Context, a pendingClaim, todo solve.Result) {
	switch {
	case todo.Action == solve.Settled:
	case todo.Action == solve.Refuse:
		r.turnAway(ctx, a, todo.Refusal)
	case r.s.observeOnly:
		r.refuse(a, refusal(v1alpha1.ReasonObserveOnly, "the manager runs with --observe-only, and binds no claim"))
	default:
		r.carryOut(ctx, a, todo)
	}
}

// turnAway says why a claim gets nothing; what a claim holds that it cannot be placed with is given back.
func (r *cycle) turnAway(ctx context.Context, a pendingClaim, why solve.Refusal) {
	if a.ask.Unplaced != "" && !r.s.observeOnly {
		r.giveBack(ctx, []pendingClaim{a})
	}
	r.refuse(a, why)
}

// carryOut has the first write of what was decided begun.
func (r *cycle) carryOut(ctx context.Context, a pendingClaim, todo solve.Result) {
	switch todo.Action {
	case solve.Complete:
		r.start(ctx, &bindAttempt{pendingClaim: a, todo: todo, revision: r.revision})
	case solve.Adopt:
		e := r.s.fleet.Get(todo.Server)
		if e == nil || r.s.backoff.holds(a.claim, e, r.s.now()) {
			r.later(a)
			return
		}
		r.start(ctx, &bindAttempt{pendingClaim: a, todo: todo, revision: r.revision, entry: e})
	case solve.Bind, solve.Again:
		r.reserve(ctx, a, todo)
	case solve.Settled, solve.Refuse:
	}
}

// start hands an attempt to a worker, once one is free.
func (r *cycle) start(ctx context.Context, t *bindAttempt) {
	r.flying++
	r.s.launch(func() { r.results <- r.s.carryOut(ctx, t) })
}

// carryOut is the work of a worker. It returns the attempt with what became of it.
func (s *Scheduler) carryOut(ctx context.Context, t *bindAttempt) (done result) {
	defer func() {
		if p := recover(); p != nil {
			done = result{done: inDoubt, err: fmt.Errorf("bind claim %s: panic: %v", claimName(t.claim), p)}
		}
		done.bindAttempt = t
	}()
	done.done = wasDropped
	_, _ = s.guard.bind(t.claim.UID, func() error {
		if current, _ := s.pending.get(t.claim.UID); current == nil {
			return nil // it went, or ends, while the pass was under way
		}
		switch t.todo.Action {
		case solve.Complete:
			done = s.nameServer(ctx, t.claim, t.todo.Server)
		case solve.Adopt:
			done = s.adoptServer(ctx, t)
		case solve.Bind:
			done = s.reserveServer(ctx, t)
		case solve.Settled, solve.Refuse, solve.Again:
		}
		return nil
	})
	return done
}

// collect waits for one of the workers, and goes on from what it did.
func (r *cycle) collect(ctx context.Context) {
	r.s.await(r.flying)
	done := <-r.results
	r.flying--
	defer func() {
		if p := recover(); p != nil {
			r.untaken(done, p)
		}
	}()
	if done.gang != nil {
		r.finishGang(ctx, done.gang)
		return
	}
	r.finish(ctx, done)
}

// untaken notes a panic while what became of a binding was taken in: it is looked up before anything else is done for the claim.
func (r *cycle) untaken(done result, p any) {
	if done.gang != nil {
		r.gangPanicked(done.gang.key, p)
		return
	}
	if t := done.bindAttempt; t.todo.Action == solve.Bind {
		r.s.unsure(t.claim.UID, t.entry.Name())
	}
	r.panicked(done.pendingClaim, p)
}

// finish takes in what became of an attempt. Only servers that may have been written stay assumed, until they were looked at.
func (r *cycle) finish(ctx context.Context, done result) {
	t := done.bindAttempt
	isBinding := t.todo.Action == solve.Bind
	if isBinding && done.done == inDoubt {
		r.s.unsure(t.claim.UID, t.entry.Name())
	} else if isBinding {
		e := r.s.fleet.Release(t.entry.Name(), t.claim.UID)
		if e != nil && e.IsFree() {
			r.returned = append(r.returned, e)
		}
	}
	if done.done == wasReserved || done.done == wasBound && !r.s.pending.isOpen(t.claim.UID) {
		r.s.uncertain.suspect(t.server()) // its claim may have gone before anybody knew that this is written
	}
	switch {
	case done.done == wasBound && done.err == nil:
		r.tookHold(ctx, done)
	case done.done == wasDropped && done.err == nil:
	case done.done == wasLost:
		r.lost(ctx, done)
	case isDenied(done.err): // it concerns this claim alone, and the pass goes on
		r.denied(ctx, t, done.err)
	default:
		r.fail(t.pendingClaim, done.err)
	}
}

// tookHold goes on after a claim got its server.
func (r *cycle) tookHold(ctx context.Context, done result) {
	t := done.bindAttempt
	r.bound++
	r.rewoke = r.s.pending.respread(t.claim.Namespace, t.claim.UID) || r.rewoke
	if gang := t.ask.Gang(); gang != nil { // the others may have waited for this one to have its server again
		r.rewoke = r.s.pending.wakeGang(gangKey{t.claim.Namespace, gang.Name}) || r.rewoke
	}
	r.s.told(ctx, done.claim, done.server)
	if t.denied != nil {
		logf.FromContext(ctx).Error(t.denied, "better servers could not be reserved", "claim", claimName(t.claim))
	}
}

// lost goes on after a write that came to nothing, with the next server.
func (r *cycle) lost(ctx context.Context, done result) {
	t := done.bindAttempt
	r.s.backoff.tried(t.claim, t.entry)
	if done.err != nil {
		t.denied = errors.Join(t.denied, done.err)
	} else {
		t.lost = true
	}
	if t.todo.Action == solve.Bind && !r.stopped {
		if next, ok := r.another(ctx, t); ok {
			r.start(ctx, next)
			return
		}
	}
	if !t.lost {
		r.denied(ctx, t, t.denied)
		return
	}
	r.s.backoff.lost(t.claim.UID, r.s.now(), longestWait)
	if t.denied != nil {
		logf.FromContext(ctx).Error(t.denied, "servers could not be reserved", "claim", claimName(t.claim))
	}
}

// denied tells a claim that the API server refuses every write for it.
func (r *cycle) denied(ctx context.Context, t *bindAttempt, err error) {
	logf.FromContext(ctx).Error(err, "the claim cannot be bound", "claim", claimName(t.claim))
	r.s.backoff.lost(t.claim.UID, r.s.now(), longestDenied)
	r.refuse(t.pendingClaim, refusedBy(err))
}

// later has a claim looked at again, though nothing may wake it.
func (r *cycle) later(a pendingClaim) {
	if !r.s.backoff.retry(a.claim.UID, r.s.now()) {
		r.s.pending.wake(a.claim.UID)
		r.rewoke = true
	}
}

// fail remembers an error, and has the next pass look at the claim again.
func (r *cycle) fail(a pendingClaim, err error) {
	r.failed = errors.Join(r.failed, err)
	r.s.pending.wake(a.claim.UID)
	r.stopped = r.stopped || isUnanswered(err)
}

// failIf is fail where there is an error.
func (r *cycle) failIf(a pendingClaim, err error) {
	if err != nil {
		r.fail(a, err)
	}
}

// isUnanswered says that a request got no answer, so that the next one most likely gets none either. What went wrong in another way
// concerns the one claim.
func isUnanswered(err error) bool {
	var network net.Error // a url.Error is one
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// refuse leaves a claim without a server.
func (r *cycle) refuse(a pendingClaim, why solve.Refusal) {
	r.left = append(r.left, refused{pendingClaim: a, refusal: why, asked: r.s.now()})
}

func refusal(reason, message string) solve.Refusal {
	return solve.Refusal{Reason: reason, Message: message}
}

// reconsider has the next cycle look at the claims that were left without a server, where one came back that they could have had.
func (r *cycle) reconsider() {
	anything := selection.ClaimSpec{Tolerations: []selection.Toleration{{Operator: "Exists"}}}
	for _, e := range r.returned {
		if r.s.fleet.Free(e.Name(), anything) == nil {
			continue
		}
		for _, l := range r.left {
			if l.refusal.Count && e.Eligible(l.ask.Spec) {
				r.s.pending.wake(l.claim.UID)
				r.rewoke = true
			}
		}
		for _, a := range r.passed {
			if e.Eligible(a.ask.Spec) {
				r.s.pending.wake(a.claim.UID)
				r.rewoke = true
			}
		}
	}
}
