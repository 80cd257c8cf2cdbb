// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/index"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/engine/selection"
	"github.com/metalaw/metalaw/policies"
)

// cycle is one cycle under way. Its decisions are made one by one, by the loop alone; only what a worker writes goes on meanwhile.
// A server that is being written for a claim is assumed to be the claim's, and so the next decision sees it as taken.
type cycle struct {
	s        *Scheduler
	snapshot *solve.Snapshot
	revision engine.Revision
	rules    policies.Rules
	began    time.Time
	// finished are handed back by the workers; flying is how many of them are at work.
	finished chan *bindAttempt
	flying   int
	// left are the claims without a server; passed those that no server was left for and whose message can wait.
	left   []refused
	passed []pendingClaim
	// returned are servers that were assumed for a claim in vain.
	returned []*index.Entry
	bound    bool
	// again says that there is more to do, of which no event will come.
	again  bool
	failed error
	// gangs are those that were served, or are being written.
	gangs map[gangKey]bool
	// stopped says that no API server answers: the other claims would only wait for it as well.
	stopped bool
}

// serveAll serves claims in order, and returns once all that is written for them is. Should it end in a panic, what the workers do is
// taken in all the same, and the next cycle looks at the claims again.
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
		for r.flying > 0 && (r.flying >= maxWriters || len(r.finished) > 0) {
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

// serve does what can be done for one claim: it decides, and has the first write begun.
func (r *cycle) serve(ctx context.Context, a pendingClaim) {
	defer func() {
		if p := recover(); p != nil {
			r.panicked(p, "claim "+claimName(a.claim), a)
		}
	}()
	if a.ask.Gang() != nil && a.claim.Spec.ServerRef == nil {
		r.serveGang(ctx, gangKey{a.claim.Namespace, a.ask.GangName()})
		return
	}
	if !r.ready(ctx, a) {
		return
	}
	if a.offered && a.class != nil && r.snapshot.Exhausted(a.ask) {
		r.passed = append(r.passed, a)
		return
	}
	r.carryOut(ctx, a, r.solve(ctx, nil, a.ask)[0])
}

// ready looks up what is in doubt about a claim, and says whether anything may be done for it yet.
func (r *cycle) ready(ctx context.Context, a pendingClaim) bool {
	isReady, err := r.s.ready(ctx, a.claim.UID)
	if err != nil {
		r.fail(a, err)
	}
	return isReady
}

// solve asks what becomes of claims, of several as members of one gang. Failed are servers to leave out by name; nil is none.
func (r *cycle) solve(ctx context.Context, failed map[string]bool, some ...*claims.Claim) []solve.Result {
	want := solve.Want{Mode: solve.Best, Forbids: r.forbids(ctx), Steps: r.s.gangSteps}
	tried := len(failed) > 0
	for _, c := range some {
		tried = tried || r.s.backoff.hasTried(uidOf(c))
	}
	if tried {
		want.Spent = func(c *claims.Claim, e *index.Entry) bool {
			return failed[e.Name()] || r.s.backoff.spent(r.s.pending.seen(c.Namespace, uidOf(c)), e)
		}
	}
	results := solve.Solve(ctx, r.snapshot, some, want)
	spent := r.snapshot.Spent
	r.snapshot.Spent = solve.Spent{}
	evaluations.Add(float64(spent.Evaluations))
	unjudged.Add(float64(spent.Unjudged))
	for _, f := range spent.Failures {
		r.s.messages.policyFailed(ctx, f.Servers, f.All)
	}
	return results
}

// carryOut has the first write of what was decided for a claim begun, or says why the claim gets nothing; what a claim has reserved that
// it cannot be placed with is given back.
func (r *cycle) carryOut(ctx context.Context, a pendingClaim, todo solve.Result) {
	m := &member{pendingClaim: a, todo: todo}
	switch {
	case todo.Action == solve.Settled:
	case todo.Action == solve.Refuse:
		if a.ask.Unplaced != "" {
			r.giveBack(ctx, []pendingClaim{a})
		}
		r.refuse(todo.Refusal, a)
	case r.s.observeOnly:
		r.refuse(observed, a)
	case todo.Action == solve.Complete:
		r.start(ctx, &bindAttempt{members: []*member{m}})
	case todo.Action == solve.Adopt:
		m.entry = r.s.fleet.Get(todo.Server)
		if m.entry == nil || r.s.backoff.holds(a.claim, m.entry, r.s.now()) {
			r.later(a)
			return
		}
		r.start(ctx, &bindAttempt{members: []*member{m}})
	default:
		r.reserve(ctx, a, todo)
	}
}

// take makes a member of a decision, and assumes the server for the claim if it is to be bound. It says no where the server changed
// meanwhile.
func (r *cycle) take(a pendingClaim, todo solve.Result) (*member, bool) {
	m := &member{pendingClaim: a, todo: todo}
	if todo.Action != solve.Bind {
		return m, true
	}
	var ok bool
	m.entry, ok = r.snapshot.Assume(todo)
	return m, ok
}

// reserve begins with the best server that can be had. Where it changed meanwhile, and where all were tried in vain and the wait
// for that is over, the solver is asked once more.
func (r *cycle) reserve(ctx context.Context, a pendingClaim, todo solve.Result) {
	for again := true; ; again = false {
		if todo.Action == solve.Bind {
			if m, ok := r.take(a, todo); ok {
				r.start(ctx, &bindAttempt{members: []*member{m}})
				return
			}
			r.snapshot.Forget()
		} else if again = again && r.s.backoff.anew(a.claim.UID, r.s.now()); again {
			r.snapshot.Forget()
		}
		if !again {
			r.later(a)
			return
		}
		if todo = r.solve(ctx, nil, a.ask)[0]; todo.Action != solve.Bind && todo.Action != solve.Again {
			r.carryOut(ctx, a, todo)
			return
		}
	}
}

// another takes the next server for the claim of an attempt after a write came to nothing.
func (r *cycle) another(ctx context.Context, t *bindAttempt) bool {
	m := t.members[0]
	if t.failed == nil {
		t.failed = map[string]bool{}
	}
	t.failed[m.entry.Name()] = true
	if len(t.failed) >= maxTries {
		return false
	}
	todo := r.solve(ctx, t.failed, m.ask)[0]
	if todo.Action != solve.Bind {
		// It may have others, once it is known what becomes of those that are being written.
		t.lost = t.lost || todo.Refusal.Misplaced[placement.CodeSpread] > 0
		return false
	}
	next, ok := r.take(m.pendingClaim, todo)
	if ok {
		t.members[0] = next
	}
	return ok
}

// start hands an attempt to a worker.
func (r *cycle) start(ctx context.Context, t *bindAttempt) {
	t.revision = r.revision
	r.flying++
	r.s.binder.launch(func() {
		r.s.binder.carryOut(ctx, t)
		r.finished <- t
	})
}

// collect waits for one of the workers, and goes on from what it did. After a panic over that, it is looked up before anything else is
// done for the claims.
func (r *cycle) collect(ctx context.Context) {
	r.s.binder.await(r.flying)
	t := <-r.finished
	r.flying--
	defer func() {
		if p := recover(); p != nil {
			var all []pendingClaim
			for _, m := range t.members {
				if m.todo.Action == solve.Bind {
					r.s.uncertain.unsure(m.claim, m.entry.Name())
				}
				all = append(all, m.pendingClaim)
			}
			r.panicked(p, t.name(), all...)
		}
	}()
	r.finish(ctx, t)
}

// finish takes in what became of an attempt, and goes on from what is written.
func (r *cycle) finish(ctx context.Context, t *bindAttempt) {
	var failed error
	var lost []*member
	for _, m := range t.members {
		r.unassume(m)
		switch {
		case m.done == wasBound && m.err == nil:
			r.tookServer(ctx, t, m)
		case m.done == wasLost:
			r.s.backoff.tried(m.claim, m.entry)
			t.denied, t.lost = errors.Join(t.denied, m.err), t.lost || m.err == nil
			lost = append(lost, m)
		case isDenied(m.err): // it concerns this claim alone, and the cycle goes on
			r.denied(ctx, m, m.err)
		case m.err != nil:
			failed = errors.Join(failed, m.err)
		}
	}
	if t.gang != (gangKey{}) {
		r.finishGang(ctx, t, lost, failed)
		return
	}
	if failed != nil {
		r.fail(t.members[0].pendingClaim, failed)
	}
	if len(lost) > 0 {
		r.lost(ctx, t, lost[0])
	}
}

// tookServer goes on after a claim got its server. The Event comes from the claim loop once it finds that the claim is Bound: until its
// server is Reserved that can take as long as a freeze lasts.
func (r *cycle) tookServer(ctx context.Context, t *bindAttempt, m *member) {
	c := m.claim
	r.bound = true
	if t.gang == (gangKey{}) {
		if gang := m.ask.Gang(); gang != nil { // the others may have waited for this one to have its server again
			r.again = r.s.pending.wakeGang(gangKey{c.Namespace, gang.Name}) || r.again
		}
	}
	r.s.messages.verdicts.drop(c.UID)
	r.s.pending.refuse(c.UID, nil)
	delete(r.s.backoff, c.UID)
	bindings.Inc()
	if _, since := r.s.pending.get(c.UID); !since.IsZero() {
		bindingSeconds.Observe(r.s.now().Sub(since).Seconds())
	}
	logf.FromContext(ctx).Info("bound", "claim", claimName(c), "claimUID", c.UID, "server", m.server())
	if t.denied != nil && t.gang == (gangKey{}) {
		logf.FromContext(ctx).Error(t.denied, "better servers could not be reserved", "claim", claimName(c))
	}
}

// lost goes on after a write for a single claim that came to nothing, with the next server.
func (r *cycle) lost(ctx context.Context, t *bindAttempt, m *member) {
	if m.todo.Action == solve.Bind && !r.stopped && r.another(ctx, t) {
		r.start(ctx, t)
		return
	}
	if !t.lost {
		r.denied(ctx, m, t.denied)
		return
	}
	r.s.backoff.lost(m.claim.UID, r.s.now(), longestWait)
	if t.denied != nil {
		logf.FromContext(ctx).Error(t.denied, "servers could not be reserved", "claim", claimName(m.claim))
	}
}

// denied leaves a claim without a server because the API server refuses every write for it.
func (r *cycle) denied(ctx context.Context, m *member, err error) {
	logf.FromContext(ctx).Error(err, "the claim cannot be bound", "claim", claimName(m.claim))
	r.s.backoff.lost(m.claim.UID, r.s.now(), longestDenied)
	r.refuse(refusedBy(err), m.pendingClaim)
}

// later has a claim looked at again, though no event may wake it.
func (r *cycle) later(a pendingClaim) {
	if !r.s.backoff.retry(a.claim.UID, r.s.now()) {
		r.s.pending.wake(a.claim.UID)
		r.again = true
	}
}

// fail remembers an error, and has the next cycle look at the claim again.
func (r *cycle) fail(a pendingClaim, err error) {
	r.failed = errors.Join(r.failed, err)
	r.s.pending.wake(a.claim.UID)
	r.stopped = r.stopped || isUnanswered(err)
}

// panicked notes a panic over a claim or a gang: what cannot be decided for it is no reason to leave out the others.
func (r *cycle) panicked(p any, over string, some ...pendingClaim) {
	r.failed = errors.Join(r.failed, fmt.Errorf("decide on %s: panic: %v\n%s", over, p, debug.Stack()))
	for _, a := range some {
		r.s.pending.wake(a.claim.UID)
	}
}

// observed is why claims get no server where the manager only observes.
var observed = solve.Refusal{Reason: v1alpha1.ReasonObserveOnly, Message: "the manager runs with --observe-only, and binds no claim"}

// refuse leaves claims without a server.
func (r *cycle) refuse(why solve.Refusal, some ...pendingClaim) {
	for _, a := range some {
		r.left = append(r.left, refused{pendingClaim: a, refusal: why, asked: r.s.now()})
	}
}

// reconsider has the next cycle look at the claims that were left without a server, where one came back that they could have had.
func (r *cycle) reconsider() {
	anything := selection.ClaimSpec{Tolerations: []selection.Toleration{{Operator: "Exists"}}}
	could := r.passed
	for _, l := range r.left {
		if l.refusal.Count {
			could = append(could, l.pendingClaim)
		}
	}
	for _, e := range r.returned {
		if r.s.fleet.Free(e.Name(), anything) == nil {
			continue
		}
		for _, a := range could {
			if e.Eligible(a.ask.Spec) {
				r.s.pending.wake(a.claim.UID)
				r.again = true
			}
		}
	}
}
