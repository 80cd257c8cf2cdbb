// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/internal/ratelimit"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// Scheduler gives servers to claims. Its loop runs on the leader alone, and one pass at a time.
type Scheduler struct {
	client   client.Client // reads from the cache
	live     client.Reader // reads from the API server
	recorder events.EventRecorder
	policy   func() (solve.Policy, engine.Revision)
	granted  func() bundle.Priority
	quota    func() bundle.Quota
	rules    func(of engine.Revision) policies.Rules
	now      func() time.Time
	// observeOnly has nothing bound, completed or taken back.
	observeOnly bool
	// launch has a worker do something; await is called by the loop before it waits for one of so many workers.
	launch func(work func())
	await  func(flying int)
	// fork has so many workers do the same work side by side, and returns once all are done.
	fork func(workers int, work func())
	// writing has room for the writes that may be under way at once.
	writing chan struct{}

	fleet    *index.Index
	pending  *pending
	verdicts *verdicts
	guard    *guard
	// uncertain are the writes of which it is not known whether they happened.
	uncertain *uncertainWrites
	// limited is when the search for a gang ended at its limit; only the loop uses it.
	limited map[gangKey]time.Time
	// backoff spaces the writes that come to nothing; only the loop uses it.
	backoff backoff
	// stood is what the rules said of claims; only the loop uses it.
	stood standing
	// placements remembers what placements say of servers; only the loop uses it.
	placements *solve.PlacementCache
	// failures spaces what is told of the servers that the policy fails for.
	failures *ratelimit.Limiter
	// known is the policy of the last pass; only the loop uses it.
	known known
	// freed says that a server was taken back for which some claim waits.
	freed atomic.Bool
	// restating says that the words of the claims that wait are to be looked at, and pause after how many nanoseconds.
	restating atomic.Bool
	pause     atomic.Int64
	// claims wakes the claim loop, passes the scheduler's own.
	claims trigger.Source
	passes trigger.TypedSource[pass]
}

// pass is what the scheduler's queue holds, so that any number of events ends in one pass. With words it binds nobody, and only
// brings up to date what the claims are told that wait.
type pass struct{ words bool }

// known is what a policy is told apart by.
type known struct {
	revision engine.Revision
	any      bool
}

// Verdict says why a claim has no server; false where nothing is known yet, or it has one.
func (s *Scheduler) Verdict(uid types.UID) (Verdict, bool) { return s.verdicts.get(uid) }

// Binding says that this version of a claim is about to be overtaken: its server is being written, or was and the cache does not show
// it yet. What is written to the claim meanwhile would be refused, or be untrue at once.
func (s *Scheduler) Binding(c *v1alpha1.ServerClaim) bool {
	return s.guard.isBound(c.UID) || s.pending.named(c)
}

// Index is the fleet as the scheduler knows it.
func (s *Scheduler) Index() *index.Index { return s.fleet }

// Claims is a source for the controller of claims: it wakes each claim whose Verdict has changed.
func (s *Scheduler) Claims() source.Source { return &s.claims }

// Wake asks for a pass over all claims, for a reason that the scheduler cannot see by itself: another policy is in force. It
// never blocks.
func (s *Scheduler) Wake() {
	s.pending.wakeAll()
	s.passes.Add(pass{})
}

// WithoutBinding runs f for a claim that ends: no binding of the claim is in flight while f runs, and none begins
// afterwards. Calling it again is allowed. Its error is that of f.
func (s *Scheduler) WithoutBinding(uid types.UID, f func() error) error { return s.guard.end(uid, f) }

// Reconcile is one pass: over the claims that something has changed for, in order.
func (s *Scheduler) Reconcile(ctx context.Context, p pass) (reconcile.Result, error) {
	if p.words {
		return reconcile.Result{RequeueAfter: s.restate()}, nil
	}
	began := s.now()
	r := s.newCycle(began)
	if !s.observeOnly {
		r.failed = errors.Join(s.resolveClosed(ctx), s.settleStrays(ctx)) // first, because it frees servers
	}
	s.freed.Store(false)
	s.backoff.keep(s.pending)
	s.stood.keep(s.pending)
	s.uncertain.keep(s.pending.isOpen, began)
	s.backoff.wake(s.pending, began)
	again := s.wakeLimited(began)
	r.serveAll(ctx, s.pending.take(s.granted(), began))
	r.reconsider()
	s.explain(r)
	passSeconds.Observe(s.now().Sub(began).Seconds())
	again = trigger.Earlier(again, trigger.Earlier(s.backoff.next(s.now()), s.uncertain.again()))
	if r.rewoke || s.freed.Load() {
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
	if now := (known{revision, policy != nil}); now != s.known {
		s.known = now
		s.pending.wakeAll()
	}
	r := &cycle{s: s, revision: revision, began: began, results: make(chan result, maxWriters), gangs: map[gangKey]bool{},
		snapshot: &solve.Snapshot{Fleet: s.fleet.Index, Policy: policy, Quota: s.quota(), Now: began.Unix(), Claims: s.pending.claimsIn,
			Cache: s.placements}}
	if policy != nil {
		r.rules = s.rules(revision)
	}
	return r
}
