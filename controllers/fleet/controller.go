// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/internal/freeze"
	"github.com/metalaw/metalaw/internal/mergepatch"
)

// Options is what the controller needs from outside.
type Options struct {
	// ObserveOnly holds back everything that would be done to a machine.
	ObserveOnly bool
	// Metrics takes the metrics.
	Metrics prometheus.Registerer
	// Now is the clock; default time.Now.
	Now func() time.Time
	// Counted is counted time; nil knows none, and then windows go by the times of the records.
	Counted *counted.Clock
}

// Setup adds the controller of the FleetControl to the manager and returns the gate.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) (*Gate, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	requeued := &trigger.Source{}
	again := func() { requeued.Trigger(policyv1alpha1.FleetControlName) }
	g := &Gate{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Interval: readInterval, ObserveOnly: o.ObserveOnly, Now: o.Now, tripped: again}
	g.counters.changed, g.counters.clock, g.counters.now = again, o.Counted, o.Now
	var err error
	if g.complete, err = g.counters.follow(ctx, mgr.GetCache()); err != nil {
		return nil, err
	}
	if err := o.Metrics.Register(withheldGauge{&g.counters}); err != nil {
		return nil, err
	}
	c := &controller{gate: g, client: mgr.GetClient(), recorder: mgr.GetEventRecorder("metalaw-fleet")}
	return g, ctrl.NewControllerManagedBy(mgr).
		Named("fleet").
		For(&policyv1alpha1.FleetControl{}).
		WatchesRawSource(requeued).
		Complete(c)
}

// controller says in the status of the FleetControl what is held back, and records that the breaker tripped.
type controller struct {
	gate     *Gate
	client   client.Client
	recorder events.EventRecorder
}

// Reconcile implements reconcile.Reconciler.
func (r *controller) Reconcile(ctx context.Context, _ ctrl.Request) (reconcile.Result, error) {
	c, err := r.gate.Control(ctx)
	if err != nil || c == nil {
		return reconcile.Result{}, err
	}
	if !r.gate.complete() {
		// The share of a fleet of which a part is known says nothing.
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	now := r.gate.Now()
	if err := r.storeTrip(ctx, c, now); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := c.DeepCopy()
	r.measure(c, now)
	describe(c, now)
	if !equality.Semantic.DeepEqual(before.Status, c.Status) {
		if err := r.patch(ctx, before, c); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		r.recordEvents(ctx, before, c)
	}
	return reconcile.Result{RequeueAfter: nextEnd(c, now)}, nil
}

// storeTrip records that the breaker tripped, in a write of its own before anything else: what is wrong with the rest of
// the status must not keep a trip from being stored. A trip ends with its breaker: one that is set again later starts anew.
func (r *controller) storeTrip(ctx context.Context, c *policyv1alpha1.FleetControl, now time.Time) error {
	before := c.DeepCopy()
	r.gate.counters.mu.Lock()
	r.gate.judge(c, now)
	r.gate.counters.mu.Unlock()
	if c.Spec.Breaker == nil {
		c.Status.Trip = nil
	}
	if equality.Semantic.DeepEqual(before.Status.Trip, c.Status.Trip) {
		return nil
	}
	return r.patch(ctx, before, c)
}

func (r *controller) patch(ctx context.Context, before, after *policyv1alpha1.FleetControl) error {
	return r.client.Status().Patch(ctx, after, mergepatch.Locked(before))
}

// measure writes into the status which budgets machines wait for.
func (r *controller) measure(c *policyv1alpha1.FleetControl, now time.Time) {
	r.gate.counters.mu.Lock()
	defer r.gate.counters.mu.Unlock()
	c.Status.Usage, c.Status.UsageOmitted = nil, 0
	// What changes with every action is left out where nobody waits: nobody reads it, and it would cost a write each time.
	if r.gate.counters.withheld[v1alpha1.ReasonBudgetExhausted] > 0 {
		c.Status.Usage, c.Status.UsageOmitted = r.gate.counters.counts(c).exhausted(now)
	}
}

// nextEnd is when the first freeze ends by itself; 0 where none does. While machines wait for a budget it looks again
// soon, because nothing else tells when that has room again.
func nextEnd(c *policyv1alpha1.FleetControl, now time.Time) time.Duration {
	var next time.Duration
	if len(c.Status.Usage) > 0 {
		next = askAgain
	}
	for i := range c.Spec.Freezes {
		f := &c.Spec.Freezes[i]
		if f.Until == nil || freeze.Ended(f, now) {
			continue
		}
		if left := f.Until.Sub(now); next == 0 || left < next {
			next = left
		}
	}
	return next
}
