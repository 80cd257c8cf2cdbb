// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/policies/index"
)

// Scheduler gives servers to claims. Its loop runs on the leader alone, and one cycle at a time.
type Scheduler struct {
	activeBundle
	now func() time.Time
	// observeOnly has nothing bound, completed or taken back.
	observeOnly bool

	fleet   *index.Index
	pending *pending
	binder  *binder
	// uncertain are the writes of which it is not known whether they happened.
	uncertain *uncertainWrites
	messages  *messages
	// passes triggers the loop.
	passes trigger.TypedSource[pass]

	// What follows is for the loop alone.

	// limited is when the search for a gang ended at its limit, of gangSteps steps or, where that is 0, solve.MaxSteps.
	limited   map[gangKey]time.Time
	gangSteps int64
	// backoff spaces the writes that come to nothing.
	backoff backoff
	// answers is what the rules said of claims.
	answers ruleAnswers
	// placements remembers what placements say of servers.
	placements *solve.PlacementCache
	// last is the policy of the last cycle.
	last lastPolicy
}

// pass is what the scheduler's queue holds, so that any number of events ends in one cycle. With words it binds no claim, and only
// brings the messages of the claims that wait up to date.
type pass struct{ words bool }

// lastPolicy tells one policy from another.
type lastPolicy struct {
	revision engine.Revision
	any      bool
}

// Verdict says why a claim has no server; false where nothing is known yet, or it has one.
func (s *Scheduler) Verdict(uid types.UID) (Verdict, bool) { return s.messages.verdicts.get(uid) }

// Binding says that this version of a claim is about to be overtaken: its server is being written, or was and the cache does not show
// it yet. What is written to the claim meanwhile would be refused, or be untrue at once.
func (s *Scheduler) Binding(c *v1alpha1.ServerClaim) bool {
	return s.binder.guard.isBound(c.UID) || s.pending.named(c)
}

// Index is the fleet as the scheduler knows it.
func (s *Scheduler) Index() *index.Index { return s.fleet }

// Claims is a source for the controller of claims: it triggers each claim whose Verdict has changed.
func (s *Scheduler) Claims() source.Source { return &s.messages.claims }

// Wake asks for a cycle over all claims, for a reason that the scheduler cannot see by itself: another policy is in force. It
// never blocks.
func (s *Scheduler) Wake() {
	s.pending.wakeAll()
	s.passes.Add(pass{})
}

// WithoutBinding runs f for a claim that ends: no binding of the claim is in flight while f runs, and none begins
// afterwards. Calling it again is allowed. Its error is that of f.
func (s *Scheduler) WithoutBinding(uid types.UID, f func() error) error {
	return s.binder.guard.end(uid, f)
}

// Reconcile is one cycle: over the claims that something has changed for, in order.
func (s *Scheduler) Reconcile(ctx context.Context, p pass) (reconcile.Result, error) {
	if p.words {
		return reconcile.Result{RequeueAfter: s.messages.restate()}, nil
	}
	began := s.now()
	r := s.newCycle(began)
	if !s.observeOnly {
		r.failed = errors.Join(s.resolveClosed(ctx), s.clearSuspects(ctx)) // first, because it frees servers
	}
	s.binder.freed.Store(false)
	s.backoff.keep(s.pending.isOpen)
	s.answers.keep(s.pending.isOpen)
	s.uncertain.keep(s.pending.isOpen, began)
	s.backoff.wake(s.pending, began)
	s.wakeLimited(began)
	r.serveAll(ctx, s.pending.take(s.claims().Priority, began))
	r.reconsider()
	s.messages.explain(r.snapshot, r.left)
	r.snapshot.Close()
	if len(r.passed) > 0 || r.bound {
		s.messages.restateSoon()
	}
	passSeconds.Observe(s.now().Sub(began).Seconds())
	again := trigger.Earlier(s.wakeLimited(began), trigger.Earlier(s.backoff.next(s.now()), s.uncertain.again()))
	if r.again || s.binder.freed.Load() {
		again = trigger.Earlier(again, firstWait) // our own write wakes no claim
	}
	if err := errors.Join(r.failed, ctx.Err()); err != nil {
		if again > 0 { // what others wait for does not wait for the end of the error
			s.passes.AddAfter(pass{}, again)
		}
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// newCycle begins a cycle. Under another policy every claim is looked at anew.
func (s *Scheduler) newCycle(began time.Time) *cycle {
	policy, revision := s.policy()
	if now := (lastPolicy{revision, policy != nil}); now != s.last {
		s.last = now
		s.pending.wakeAll()
	}
	r := &cycle{s: s, revision: revision, began: began, finished: make(chan *bindAttempt, maxWriters), gangs: map[gangKey]bool{},
		snapshot: &solve.Snapshot{Fleet: s.fleet.Index, Policy: policy, Quota: s.claims().Quota, Now: began.Unix(), Claims: s.pending.claimsIn,
			Cache: s.placements}}
	if policy != nil {
		r.rules = s.rules(revision)
	}
	return r
}
