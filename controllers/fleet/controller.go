// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalaw/metalaw/api/freeze"
	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/wake"
)

// Options is what the controller needs from outside.
type Options struct {
	// ObserveOnly holds back everything that would be done to a machine.
	ObserveOnly bool
	// Metrics takes the metrics.
	Metrics prometheus.Registerer
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Setup adds the controller of the FleetControl to the manager and returns the gate.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) (*Gate, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	woken := &wake.Source{}
	again := func() { woken.Wake(policyv1alpha1.FleetControlName) }
	g := &Gate{Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), ObserveOnly: o.ObserveOnly, Now: o.Now,
		census: newCensus(again), tripped: again}
	informer, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.Server{})
	if err != nil {
		return nil, err
	}
	registered, err := informer.AddEventHandler(g.census.handler())
	if err != nil {
		return nil, err
	}
	g.complete = registered.HasSynced
	if err := o.Metrics.Register(withheldGauge{g.census}); err != nil {
		return nil, err
	}
	c := &controller{gate: g, client: mgr.GetClient(), recorder: mgr.GetEventRecorder("metalaw-fleet")}
	return g, ctrl.NewControllerManagedBy(mgr).
		Named("fleet").
		For(&policyv1alpha1.FleetControl{}).
		WatchesRawSource(woken).
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
	before := c.DeepCopy()
	now := r.gate.Now()
	r.judge(c, now)
	describe(c, now)
	if !equality.Semantic.DeepEqual(before.Status, c.Status) {
		if err := r.client.Status().Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		r.tell(ctx, before, c)
	}
	return reconcile.Result{RequeueAfter: nextEnd(c, now)}, nil
}

// judge writes into the status whether the breaker has tripped, and which budgets machines wait for. A trip ends with its
// breaker: one that is set again later starts anew.
func (r *controller) judge(c *policyv1alpha1.FleetControl, now time.Time) {
	r.gate.census.mu.Lock()
	defer r.gate.census.mu.Unlock()
	machines := r.gate.census.assumed(now)
	if c.Spec.Breaker == nil {
		c.Status.Trip = nil
	}
	if !freeze.Tripped(c) {
		if trip := trips(c.Spec.Breaker, machines, now); trip != nil {
			c.Status.Trip = trip
		}
	}
	c.Status.Usage = nil
	// What changes with every action is left out where nobody waits: nobody reads it, and it would cost a write each time.
	for _, m := range machines {
		if m.withheld == v1alpha1.ReasonBudgetExhausted {
			c.Status.Usage = usage(c.Spec.Budgets, machines, now, exhausting)
			return
		}
	}
}

// describe brings the conditions up to date.
func describe(c *policyv1alpha1.FleetControl, now time.Time) {
	c.Status.ObservedGeneration = c.Generation
	set := func(kind string, is bool, reasons [2]string, message string) {
		status, reason := metav1.ConditionFalse, reasons[0]
		if is {
			status, reason = metav1.ConditionTrue, reasons[1]
		}
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message,
			ObservedGeneration: c.Generation, LastTransitionTime: metav1.NewTime(now)})
	}
	level, words := inForce(c, now)
	set(policyv1alpha1.ConditionFrozen, level != policyv1alpha1.FreezeNone, [2]string{policyv1alpha1.ReasonNotFrozen, frozenReason(level)}, words)
	tripped, message := freeze.Tripped(c), "the breaker is closed"
	if tripped {
		message = fmt.Sprintf("%d of %d servers had entered the states that it watches; metalaw unfreeze --breaker closes it",
			c.Status.Trip.Servers, c.Status.Trip.Of)
	}
	set(policyv1alpha1.ConditionBreakerTripped, tripped,
		[2]string{policyv1alpha1.ReasonBreakerClosed, policyv1alpha1.ReasonBreakerTripped}, message)
	spent, message := len(c.Status.Usage) > 0, "no machine waits for a budget"
	if spent {
		var names []string
		for _, u := range c.Status.Usage {
			names = append(names, strings.TrimSuffix(u.Name+" "+u.Value, " "))
		}
		message = "machines wait for " + strings.Join(names, ", ")
	}
	set(policyv1alpha1.ConditionBudgetExhausted, spent,
		[2]string{policyv1alpha1.ReasonBudgetsLeft, policyv1alpha1.ReasonBudgetsExhausted}, message)
}

// frozenReason is how the condition Frozen names a level.
func frozenReason(level policyv1alpha1.FreezeLevel) string {
	if level == policyv1alpha1.FreezeAll {
		return policyv1alpha1.ReasonFrozenAll
	}
	return policyv1alpha1.ReasonFrozenDestructive
}

// inForce is the strictest level of the freezes that have not ended, and the names of all of them.
func inForce(c *policyv1alpha1.FleetControl, now time.Time) (policyv1alpha1.FreezeLevel, string) {
	level := policyv1alpha1.FreezeNone
	var names []string
	for i := range c.Spec.Freezes {
		f := &c.Spec.Freezes[i]
		if freeze.Ended(f, now) || f.Level == policyv1alpha1.FreezeNone {
			continue
		}
		names = append(names, freeze.Words(f))
		if level != policyv1alpha1.FreezeAll {
			level = f.Level
		}
	}
	if len(names) == 0 {
		return level, "nothing is frozen by hand"
	}
	return level, strings.Join(names, "; ")
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

// tell reports what came and what went.
func (r *controller) tell(ctx context.Context, before, after *policyv1alpha1.FleetControl) {
	for _, now := range after.Status.Conditions {
		was := meta.FindStatusCondition(before.Status.Conditions, now.Type)
		if (was == nil && now.Status == metav1.ConditionFalse) || (was != nil && was.Status == now.Status && was.Message == now.Message) {
			continue
		}
		kind := corev1.EventTypeNormal
		if now.Status == metav1.ConditionTrue {
			kind = corev1.EventTypeWarning
		}
		r.recorder.Eventf(after, nil, kind, now.Type+string(now.Status), "Control", "%s", now.Message)
		logf.FromContext(ctx).Info("fleet control", "condition", now.Type, "status", now.Status, "reason", now.Reason, "message", now.Message)
	}
}

// withheldGauge counts the servers from which something is withheld.
type withheldGauge struct{ census *census }

var withheldDesc = prometheus.NewDesc("metalaw_servers_withheld",
	"Servers from which something that their state asks for is held back, by reason.", []string{"reason"}, nil)

// Describe implements prometheus.Collector.
func (withheldGauge) Describe(ch chan<- *prometheus.Desc) { ch <- withheldDesc }

// Collect implements prometheus.Collector.
func (w withheldGauge) Collect(ch chan<- prometheus.Metric) {
	count := w.census.withheld()
	for _, reason := range []string{
		v1alpha1.ReasonFrozen, v1alpha1.ReasonBreakerTripped, v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonObserveOnly, v1alpha1.ReasonStarting,
	} {
		ch <- prometheus.MustNewConstMetric(withheldDesc, prometheus.GaugeValue, float64(count[reason]), reason)
	}
}
