// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/scheduler/index"
	"github.com/metalaw/metalaw/controllers/wake"
	"github.com/metalaw/metalaw/engine"
)

// Scheduler gives servers to claims. Its loop runs on the leader alone, and one pass at a time.
type Scheduler struct {
	client   client.Client // reads from the cache
	live     client.Reader // reads from the API server
	recorder events.EventRecorder
	policy   func() (Policy, engine.Revision)
	now      func() time.Time
	// observeOnly has nothing bound, completed or taken back.
	observeOnly bool

	fleet    *index.Index
	pending  *pending
	verdicts *verdicts
	guard    *guard
	// doubts holds the server of a write whose answer got lost, by claim; only the loop uses it.
	doubts map[types.UID]string
	// patience spaces the writes that come to nothing; only the loop uses it.
	patience patience
	// freed says that this pass took a server back after claims had been served; only the loop uses it.
	freed bool
	// claims wakes the claim loop, passes the scheduler's own.
	claims wake.Source
	passes wake.TypedSource[pass]
}

// pass is the one thing that the scheduler's queue holds, so that any number of events ends in one pass.
type pass struct{}

// Verdict says why a claim has no server; false where nothing is known yet, or it has one.
func (s *Scheduler) Verdict(uid types.UID) (Verdict, bool) { return s.verdicts.get(uid) }

// Claims is a source for the controller of claims: it wakes each claim whose Verdict has changed.
func (s *Scheduler) Claims() source.Source { return &s.claims }

// Wake asks for a pass, for a reason that the scheduler cannot see by itself: another policy is in force. It never blocks.
func (s *Scheduler) Wake() { s.passes.Add(pass{}) }

// WithoutBinding runs f for a claim that ends: no binding of the claim is in flight while f runs, and none begins
// afterwards. Calling it again is allowed. Its error is that of f.
func (s *Scheduler) WithoutBinding(uid types.UID, f func() error) error { return s.guard.end(uid, f) }

// Reconcile is one pass.
func (s *Scheduler) Reconcile(ctx context.Context, _ pass) (reconcile.Result, error) {
	began := s.now()
	now := view{fleet: s.fleet, now: began.Unix()}
	now.policy, now.revision = s.policy()
	var left []refused
	again := time.Duration(0)
	var failed error
	if !s.observeOnly {
		failed = errors.Join(s.resolveClosed(ctx), s.settleStrays(ctx)) // first, because it frees servers
	}
	s.freed = false
	s.patience.keep(s.pending)
	for _, c := range s.pending.inOrder() {
		if err := ctx.Err(); err != nil {
			return reconcile.Result{}, err
		}
		todo, wait, err := s.serve(ctx, now, c)
		failed = errors.Join(failed, err)
		if err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
			break // nobody answers: the others would only wait for it as well
		}
		again = wake.Sooner(again, wait)
		if todo.action == refuse {
			left = append(left, refused{c, todo})
		}
	}
	again = wake.Sooner(again, s.explain(now, left))
	if s.freed {
		again = firstWait // our own write wakes nobody
	}
	passSeconds.Observe(s.now().Sub(began).Seconds())
	if failed != nil {
		return reconcile.Result{}, failed
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// refused is a claim that a pass left without a server.
type refused struct {
	claim *v1alpha1.ServerClaim
	step  step
}

// serve does what can be done for one claim. wait is when it has to be looked at again though nothing may wake us.
func (s *Scheduler) serve(ctx context.Context, v view, c *v1alpha1.ServerClaim) (todo step, wait time.Duration, err error) {
	if err := s.resolve(ctx, c.UID); err != nil {
		return step{action: settled}, 0, err
	}
	todo = v.decide(ctx, c)
	if todo.action == settled || todo.action == refuse {
		return todo, 0, nil
	}
	if s.observeOnly {
		return refusal(v1alpha1.ReasonObserveOnly, "the manager runs with --observe-only, and binds no claim"), 0, nil
	}
	var done outcome
	_, err = s.guard.bind(c.UID, func() (err error) {
		if current, _ := s.pending.get(c.UID); current == nil {
			return nil // it went, or ends, while the pass was under way
		}
		switch todo.action {
		case complete:
			err = s.nameServer(ctx, c, todo.server)
		case adopt:
			done, err = s.adoptServer(ctx, c, todo.server)
		case bind:
			done, err = s.bind(ctx, c, todo)
		case settled, refuse:
		}
		return err
	})
	switch {
	case isDenied(err): // it concerns this claim alone, and the pass goes on
		logf.FromContext(ctx).Error(err, "the claim cannot be bound", "claim", claimName(c))
		s.patience.lost(c.UID, s.now(), longestDenied)
		return refusedBy(err), s.patience.wait(c.UID, s.now()), nil
	case done == wasLost && err == nil:
		return todo, cmp.Or(s.patience.wait(c.UID, s.now()), firstWait), nil
	}
	return todo, 0, err
}

// explain hands the claims that were left without a server their verdicts, once all that could be bound are, so that
// the counts hold for all. A claim that has closed since gets none. It returns when to do so again.
func (s *Scheduler) explain(v view, left []refused) time.Duration {
	memo := map[string]count{}
	again := time.Duration(0)
	now := s.now()
	for _, r := range left {
		isOpen := func() bool { c, _ := s.pending.get(r.claim.UID); return c != nil }
		changed, later := s.verdicts.give(r.claim.UID, v.finish(r.step, memo), now, isOpen)
		again = wake.Sooner(again, later)
		if changed {
			s.claims.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(r.claim)})
		}
	}
	return again
}
