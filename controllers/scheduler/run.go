// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// run is one pass under way. Its decisions are made one by one, by the loop alone; only what a worker writes goes on meanwhile.
// A server that is being written for a claim is assumed to be the claim's, and so the next decision sees it as taken.
type run struct {
	s *Scheduler
	v *view
	// results are handed back by the workers; flying is how many of them are at work.
	results chan result
	flying  int
	// left are the claims without a server; passed those that no server was left for and whose words can wait.
	left   []refused
	passed []asking
	// returned are servers that were assumed for a claim in vain.
	returned []*index.Entry
	bound    int
	// rewoke says that there is more to do, of which nothing from outside will tell.
	rewoke bool
	failed error
	// gangs are those that were served, or are being written.
	gangs map[gangKey]bool
	// given are servers that were kept for a gang until this pass.
	given []string
	// stopped says that nobody answers: the other claims would only wait for it as well.
	stopped bool
}

// attempt is a step for one claim that is being carried out.
type attempt struct {
	asking
	todo step
	// entry is the server that it is about, in the version that was decided on; nil for one that only has to be named.
	entry *index.Entry
	// at is where to go on in the list of the choice, rank where the server stood in it.
	at, rank int
	score    float64
	// others is how many more servers the policy allows.
	others int
	denied error
	lost   bool
	// failed are the servers of which a write came to nothing in this attempt.
	failed map[string]bool
	// contended is how many servers were passed over which the claim may have or not, by what becomes of bindings that are under way.
	contended int
}

// server is the name of the one that the attempt is about.
func (t *attempt) server() string {
	if t.entry != nil {
		return t.entry.Name()
	}
	return t.todo.server
}

// result is what a worker hands back. claim and server are set where they name each other now.
type result struct {
	*attempt
	// gang is set where the result is that of a whole gang, instead of attempt.
	gang   *gangAttempt
	done   outcome
	err    error
	claim  *v1alpha1.ServerClaim
	server string
}

// serveAll serves claims in order, and returns once all that is written for them is. Should it end in a panic, what the workers do is
// taken in all the same, and the next pass looks at the claims again.
func (r *run) serveAll(ctx context.Context, due []asking) {
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
func (r *run) panicked(a asking, p any) {
	r.fail(a, fmt.Errorf("decide on claim %s: panic: %v\n%s", claimName(a.claim), p, debug.Stack()))
}

// serve does what can be done for one claim: it decides, and has the first write begun.
func (r *run) serve(ctx context.Context, a asking) {
	defer func() {
		if p := recover(); p != nil {
			r.panicked(a, p)
		}
	}()
	if a.placed.Gang() != nil && a.claim.Spec.ServerRef == nil {
		r.serveGang(ctx, gangKey{a.claim.Namespace, a.placed.Gang().Name})
		return
	}
	if isReady, err := r.ready(ctx, a); err != nil || !isReady {
		r.failIf(a, err)
		return
	}
	if a.offered && a.class != nil && r.v.exhausted[a.class.key] {
		r.passed = append(r.passed, a)
		return
	}
	todo := r.v.decide(ctx, a, false)
	if todo.action == bind && a.placed.Gang() != nil && !policies.HadServer(a.claim) {
		todo = refusal(v1alpha1.ReasonInvalidPlacement, "a claim of a gang cannot name its server in spec.serverRef; "+
			"serverRef cannot be changed, so claim anew without it")
	}
	r.carryOutOrRefuse(ctx, a, todo)
}

// carryOutOrRefuse does what was decided for a claim.
func (r *run) carryOutOrRefuse(ctx context.Context, a asking, todo step) {
	switch {
	case todo.action == settled:
	case todo.action == refuse:
		r.turnAway(ctx, a, todo)
	case r.s.observeOnly:
		r.refuse(a, refusal(v1alpha1.ReasonObserveOnly, "the manager runs with --observe-only, and binds no claim"))
	default:
		r.carryOut(ctx, a, todo)
	}
}

// turnAway says why a claim gets nothing; what a claim holds that it cannot be placed with is given back.
func (r *run) turnAway(ctx context.Context, a asking, why step) {
	if a.unplaced != "" && !r.s.observeOnly {
		r.giveBack(ctx, []asking{a})
	}
	r.refuse(a, why)
}

// carryOut has the first write of what was decided begun.
func (r *run) carryOut(ctx context.Context, a asking, todo step) {
	switch todo.action {
	case complete:
		r.start(ctx, &attempt{asking: a, todo: todo})
	case adopt:
		e := r.s.fleet.Get(todo.server)
		if e == nil || r.s.patience.holds(a.claim, e, r.s.now()) {
			r.later(a)
			return
		}
		r.start(ctx, &attempt{asking: a, todo: todo, entry: e})
	case bind:
		r.reserve(ctx, a, todo)
	case settled, refuse:
	}
}

// start hands an attempt to a worker, once one is free.
func (r *run) start(ctx context.Context, t *attempt) {
	r.flying++
	r.s.launch(func() { r.results <- r.s.carryOut(ctx, t) })
}

// carryOut is the work of a worker. It returns the attempt with what became of it.
func (s *Scheduler) carryOut(ctx context.Context, t *attempt) (done result) {
	defer func() {
		if p := recover(); p != nil {
			done = result{done: inDoubt, err: fmt.Errorf("bind claim %s: panic: %v", claimName(t.claim), p)}
		}
		done.attempt = t
	}()
	done.done = wasDropped
	_, _ = s.guard.bind(t.claim.UID, func() error {
		if current, _ := s.pending.get(t.claim.UID); current == nil {
			return nil // it went, or ends, while the pass was under way
		}
		switch t.todo.action {
		case complete:
			done = s.nameServer(ctx, t.claim, t.todo.server)
		case adopt:
			done = s.adoptServer(ctx, t)
		case bind:
			done = s.reserveServer(ctx, t)
		case settled, refuse:
		}
		return nil
	})
	return done
}

// collect waits for one of the workers, and goes on from what it did.
func (r *run) collect(ctx context.Context) {
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
func (r *run) untaken(done result, p any) {
	if done.gang != nil {
		r.gangPanicked(done.gang.key, p)
		return
	}
	if t := done.attempt; t.todo.action == bind {
		r.s.unsure(t.claim.UID, t.entry.Name())
	}
	r.panicked(done.asking, p)
}

// finish takes in what became of an attempt. Only servers that may have been written stay assumed, until they were looked at.
func (r *run) finish(ctx context.Context, done result) {
	t := done.attempt
	isBinding := t.todo.action == bind
	if isBinding && done.done == inDoubt {
		r.s.unsure(t.claim.UID, t.entry.Name())
	} else if isBinding {
		e := r.s.fleet.Release(t.entry.Name(), t.claim.UID)
		if e != nil && e.IsFree() {
			r.returned = append(r.returned, e)
		}
	}
	if done.done == wasReserved || done.done == wasBound && !r.s.pending.isOpen(t.claim.UID) {
		r.s.suspects.add(t.server()) // its claim may have gone before anybody knew that this is written
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
		r.fail(t.asking, done.err)
	}
}

// tookHold goes on after a claim got its server.
func (r *run) tookHold(ctx context.Context, done result) {
	t := done.attempt
	r.bound++
	r.rewoke = r.s.pending.respread(t.claim.Namespace, t.claim.UID) || r.rewoke
	if gang := t.placed.Gang(); gang != nil { // the others may have waited for this one to have its server again
		r.rewoke = r.s.pending.wakeGang(gangKey{t.claim.Namespace, gang.Name}) || r.rewoke
	}
	r.s.told(ctx, done.claim, done.server)
	if t.denied != nil {
		logf.FromContext(ctx).Error(t.denied, "better servers could not be reserved", "claim", claimName(t.claim))
	}
}

// lost goes on after a write that came to nothing, with the next server.
func (r *run) lost(ctx context.Context, done result) {
	t := done.attempt
	r.s.patience.tried(t.claim, t.entry)
	if done.err != nil {
		t.denied = errors.Join(t.denied, done.err)
	} else {
		t.lost = true
	}
	if t.todo.action == bind && !r.stopped && r.another(ctx, t) {
		r.start(ctx, t)
		return
	}
	if !t.lost && t.contended == 0 { // else it may have others, once it is known what becomes of those that are being written
		r.denied(ctx, t, t.denied)
		return
	}
	r.s.patience.lost(t.claim.UID, r.s.now(), longestWait)
	if t.denied != nil {
		logf.FromContext(ctx).Error(t.denied, "servers could not be reserved", "claim", claimName(t.claim))
	}
}

// denied tells a claim that the API server refuses every write for it.
func (r *run) denied(ctx context.Context, t *attempt, err error) {
	logf.FromContext(ctx).Error(err, "the claim cannot be bound", "claim", claimName(t.claim))
	r.s.patience.lost(t.claim.UID, r.s.now(), longestDenied)
	r.refuse(t.asking, refusedBy(err))
}

// later has a claim looked at again, though nothing may wake it.
func (r *run) later(a asking) {
	if !r.s.patience.retry(a.claim.UID, r.s.now()) {
		r.s.pending.wake(a.claim.UID)
		r.rewoke = true
	}
}

// fail remembers an error, and has the next pass look at the claim again.
func (r *run) fail(a asking, err error) {
	r.failed = errors.Join(r.failed, err)
	r.s.pending.wake(a.claim.UID)
	r.stopped = r.stopped || isUnanswered(err)
}

// failIf is fail where there is an error.
func (r *run) failIf(a asking, err error) {
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
func (r *run) refuse(a asking, todo step) {
	r.left = append(r.left, refused{claim: a.claim, step: todo, asked: r.s.now()})
}

// reconsider has the next pass look at the claims that were left without a server, where one came back that they could have had.
func (r *run) reconsider() {
	for _, e := range r.returned {
		if r.s.fleet.Free(e.Name(), selection.ClaimSpec{Tolerations: anything}) == nil {
			continue
		}
		for _, l := range r.left {
			if l.step.count && e.Eligible(l.step.spec) {
				r.s.pending.wake(l.claim.UID)
				r.rewoke = true
			}
		}
		for _, a := range r.passed {
			if e.Eligible(a.spec) {
				r.s.pending.wake(a.claim.UID)
				r.rewoke = true
			}
		}
	}
}

// anything tolerates every taint.
var anything = []selection.Toleration{{Operator: "Exists"}}
