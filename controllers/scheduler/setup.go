// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/scheduler/informer"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims/solve"
	"github.com/metalaw/metalaw/internal/ratelimit"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/policies/index"
)

// Bundles knows the bundle in force. Active is called once per pass and must not block; it returns nil while there is
// none. Whoever puts another one in force calls Scheduler.Wake.
type Bundles interface{ Active() *bundle.Bundle }

// Options is what the scheduler needs from outside.
type Options struct {
	Bundles Bundles
	// Fleet is the index that this process keeps, with what feeds it; Setup makes one where it is nil.
	Fleet *informer.Informer
	// ObserveOnly has nothing bound.
	ObserveOnly bool
	// Now is the clock; time.Now where it is nil.
	Now func() time.Time
}

const (
	firstRetry = 20 * time.Millisecond
	lastRetry  = 30 * time.Second
)

type queue = workqueue.TypedRateLimitingInterface[pass]

// New makes a scheduler without a loop, which only answers. Setup gives it one.
func New(c client.Client, live client.Reader, o Options) *Scheduler {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Fleet == nil {
		o.Fleet = informer.New(index.New())
	}
	s := &Scheduler{
		activeBundle: activeBundle{inForce(o.Bundles), claimsOf(o.Bundles), rulesOf(o.Bundles)},
		now:          o.Now, observeOnly: o.ObserveOnly, fleet: o.Fleet.Index(), pending: newPending(), uncertain: newUncertainWrites(),
		limited: map[gangKey]time.Time{}, backoff: backoff{}, answers: ruleAnswers{}, placements: solve.NewPlacementCache(),
	}
	s.messages = &messages{verdicts: newVerdicts(), fleet: s.fleet, pending: s.pending, now: o.Now, passes: &s.passes,
		failures: ratelimit.New(reportFailureAgain, mostFailures)}
	s.binder = &binder{client: client.WithFieldOwner(c, loop.FieldOwner), live: live, fleet: s.fleet, pending: s.pending,
		guard: newGuard(), messages: s.messages, now: o.Now, workers: newWorkers()}
	return s
}

// activeBundle is what the scheduler reads out of the bundle in force.
type activeBundle struct {
	policy func() (solve.Policy, engine.Revision)
	claims func() bundle.Claims
	rules  func(of engine.Revision) policies.Rules
}

// inForce reads the policy out of the bundle in force; there is none where that is held.
func inForce(bundles Bundles) func() (solve.Policy, engine.Revision) {
	return func() (solve.Policy, engine.Revision) {
		b := bundles.Active()
		if b == nil || b.Selection == nil {
			return nil, engine.Revision{}
		}
		if b.StandsIn { // whatever is said of that revision by now
			return nil, b.Revision
		}
		if policy, ok := bundles.(interface {
			Held(name string) (string, bool)
		}); ok {
			if _, held := policy.Held(b.Revision.Name); held {
				return nil, b.Revision
			}
		}
		return b.Selection, b.Revision
	}
}

// claimsOf reads out of the bundle in force what claims may have: their priority, and the quota of their namespaces.
func claimsOf(bundles Bundles) func() bundle.Claims {
	return func() bundle.Claims {
		if b := bundles.Active(); b != nil {
			return b.Settings.Claims
		}
		return bundle.Claims{}
	}
}

// Setup adds the scheduler to the manager. Its Claims are a source for the claim loop on the same manager.
func Setup(ctx context.Context, mgr manager.Manager, o Options) (*Scheduler, error) {
	if o.Bundles == nil {
		return nil, errors.New("scheduler: Options.Bundles is missing; give what knows the bundle in force")
	}
	if o.Fleet == nil {
		var err error
		if o.Fleet, err = informer.Setup(ctx, mgr.GetCache()); err != nil {
			return nil, err
		}
	}
	s := New(mgr.GetClient(), mgr.GetAPIReader(), o)
	s.messages.recorder = mgr.GetEventRecorder("metalaw-scheduler")
	err := builder.TypedControllerManagedBy[pass](mgr).Named("claim-scheduler").
		WatchesRawSource(servers{o.Fleet, s}).
		WatchesRawSource(source.TypedKind(mgr.GetCache(), &v1alpha1.ServerClaim{}, s.claimEvents())).
		WatchesRawSource(&s.passes).
		WithOptions(controller.TypedOptions[pass]{
			MaxConcurrentReconciles: 1,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[pass](firstRetry, lastRetry),
		}).
		Complete(s)
	return s, err
}

// servers wakes the scheduler for what the index comes to know: at first of every server, then of each change.
type servers struct {
	fleet *informer.Informer
	s     *Scheduler
}

// Start implements source.TypedSource.
func (w servers) Start(_ context.Context, q queue) error {
	w.fleet.Follow(func(c index.Change) { w.s.ask(q, w.s.serverChanged(c)) })
	return nil
}

// WaitForSync implements source.TypedSyncingSource: nobody is bound before the whole fleet is known.
func (w servers) WaitForSync(ctx context.Context) error { return w.fleet.WaitForSync(ctx) }

func (s *Scheduler) claimEvents() handler.TypedEventHandler[*v1alpha1.ServerClaim, pass] {
	saw := func(c *v1alpha1.ServerClaim, q queue) { s.ask(q, s.claimChanged(c)) }
	return handler.TypedFuncs[*v1alpha1.ServerClaim, pass]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*v1alpha1.ServerClaim], q queue) { saw(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v1alpha1.ServerClaim], q queue) {
			if e.ObjectOld.UID != e.ObjectNew.UID { // a watch that was interrupted tells so of a claim that was made anew
				s.ask(q, s.claimGone(e.ObjectOld))
			}
			saw(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*v1alpha1.ServerClaim], q queue) {
			s.ask(q, s.claimGone(e.Object))
		},
	}
}

// ask asks for a pass where one is due.
func (s *Scheduler) ask(q queue, due bool) {
	if due {
		q.Add(pass{})
	}
}

// serverChanged takes in what came to be known of a server. It says whether a pass is due: where the server could satisfy a claim
// that waits, concerns one in another way, or may have to be taken back.
func (s *Scheduler) serverChanged(c index.Change) bool {
	if !c.Matters() {
		return false
	}
	due := s.pending.concerned(c)
	if c.After != nil && s.suspect(c.After) {
		due = true
	}
	s.messages.restateSoon()
	return due
}

// claimChanged takes in a version of a claim. It says whether a pass is due.
func (s *Scheduler) claimChanged(c *v1alpha1.ServerClaim) bool {
	due := s.pending.saw(c, s.now())
	if !policies.Open(c) {
		s.messages.verdicts.drop(c.UID)
	}
	return s.suspectsOf(index.ClaimKey{Namespace: c.Namespace, Name: c.Name}, c) || due
}

// claimGone forgets a claim. It says whether a pass is due: a server may be written for it.
func (s *Scheduler) claimGone(c *v1alpha1.ServerClaim) bool {
	due := s.pending.gone(c.Namespace, c.UID)
	s.messages.verdicts.drop(c.UID)
	s.binder.guard.forget(c.UID)
	return s.suspectsOf(index.ClaimKey{Namespace: c.Namespace, Name: c.Name}, nil) || due
}
