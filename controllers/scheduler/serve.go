// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"

	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/index"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/engine/placement"
)

// solve asks what becomes of claims, of several as members of one gang. Failed are servers to leave out by name; nil is none.
func (r *cycle) solve(ctx context.Context, some []*claims.Claim, failed map[string]bool) []solve.Result {
	want := solve.Want{Mode: solve.Best, Forbids: r.forbids(ctx)}
	tried := len(failed) > 0
	for _, c := range some {
		tried = tried || r.s.backoff.hasTried(uidOf(c))
	}
	if tried {
		want.Spent = func(c *claims.Claim, e *index.Entry) bool {
			return failed[e.Name()] || r.s.backoff.spent(r.s.pending.known(c), e)
		}
	}
	results := solve.Solve(ctx, r.snapshot, some, want)
	spent := r.snapshot.Spent
	r.snapshot.Spent = solve.Spent{}
	evaluations.Add(float64(spent.Evaluations))
	unjudged.Add(float64(spent.Unjudged))
	for _, f := range spent.Failures {
		r.s.tellFailures(ctx, f.Servers, f.All)
	}
	return results
}

// one asks what becomes of a claim by itself.
func (r *cycle) one(ctx context.Context, a pendingClaim, failed map[string]bool) solve.Result {
	return r.solve(ctx, []*claims.Claim{a.ask}, failed)[0]
}

// take makes an attempt of a decision to bind, and assumes the server for the claim. It says no where the server changed meanwhile.
func (r *cycle) take(a pendingClaim, todo solve.Result) (*bindAttempt, bool) {
	t := &bindAttempt{pendingClaim: a, todo: todo, revision: r.revision}
	if todo.Action != solve.Bind {
		return t, true
	}
	var ok bool
	t.entry, ok = r.snapshot.Assume(todo)
	return t, ok
}

// reserve begins with the best server that can be had. Where it changed under our hands, and where all were tried in vain and the wait
// for that is over, the solver is asked once more.
func (r *cycle) reserve(ctx context.Context, a pendingClaim, todo solve.Result) {
	for again := true; ; again = false {
		if todo.Action == solve.Bind {
			if t, ok := r.take(a, todo); ok {
				r.start(ctx, t)
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
		if todo = r.one(ctx, a, nil); todo.Action != solve.Bind && todo.Action != solve.Again {
			r.carryOutOrRefuse(ctx, a, todo)
			return
		}
	}
}

// another goes on with the next server after a write came to nothing.
func (r *cycle) another(ctx context.Context, t *bindAttempt) (*bindAttempt, bool) {
	if t.failed == nil {
		t.failed = map[string]bool{}
	}
	t.failed[t.entry.Name()] = true
	if len(t.failed) >= maxTries {
		return nil, false
	}
	todo := r.one(ctx, t.pendingClaim, t.failed)
	if todo.Action != solve.Bind {
		// It may have others, once it is known what becomes of those that are being written.
		t.lost = t.lost || todo.Refusal.Misplaced[placement.CodeSpread] > 0
		return nil, false
	}
	next, ok := r.take(t.pendingClaim, todo)
	if ok {
		next.failed, next.denied, next.lost = t.failed, t.denied, t.lost
	}
	return next, ok
}
