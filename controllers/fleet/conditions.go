// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/internal/freeze"
)

// describe brings the conditions up to date, and acknowledges the spec. The spec comes from the cache that Look reads, so
// from then on no effect begins that the spec holds back.
func describe(c *policyv1alpha1.FleetControl, now time.Time) {
	c.Status.ObservedGeneration = c.Generation
	set := func(kind string, is bool, reasons [2]string, message string) {
		status, reason := metav1.ConditionFalse, reasons[0]
		if is {
			status, reason = metav1.ConditionTrue, reasons[1]
		}
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason,
			Message: loop.Shortened(message, loop.MaxMessage), ObservedGeneration: c.Generation, LastTransitionTime: metav1.NewTime(now)})
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
		message = "machines wait for " + waitedFor(c)
	}
	set(policyv1alpha1.ConditionBudgetExhausted, spent,
		[2]string{policyv1alpha1.ReasonBudgetsLeft, policyv1alpha1.ReasonBudgetsExhausted}, message)
}

// maxNamed is how many budgets a condition names; status.usage lists them.
const maxNamed = 10

// waitedFor names the budgets that have no room.
func waitedFor(c *policyv1alpha1.FleetControl) string {
	var names []string
	for _, u := range c.Status.Usage[:min(len(c.Status.Usage), maxNamed)] {
		names = append(names, strings.TrimSuffix(u.Name+" "+u.Value, " "))
	}
	if more := len(c.Status.Usage) - len(names) + int(c.Status.UsageOmitted); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// frozenReason is how the condition Frozen names a level.
func frozenReason(level policyv1alpha1.FreezeLevel) string {
	switch level {
	case policyv1alpha1.FreezeAll:
		return policyv1alpha1.ReasonFrozenAll
	case policyv1alpha1.FreezeMaintenance:
		return policyv1alpha1.ReasonFrozenMaintenance
	default:
		return policyv1alpha1.ReasonFrozenDestructive
	}
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
		if freeze.Strictness(f.Level) > freeze.Strictness(level) {
			level = f.Level
		}
	}
	if len(names) == 0 {
		return level, "nothing is frozen by hand"
	}
	return level, strings.Join(names, "; ")
}

// recordEvents reports what came and what went.
func (r *controller) recordEvents(ctx context.Context, before, after *policyv1alpha1.FleetControl) {
	for _, now := range after.Status.Conditions {
		was := meta.FindStatusCondition(before.Status.Conditions, now.Type)
		if (was == nil && now.Status == metav1.ConditionFalse) || (was != nil && was.Status == now.Status && was.Message == now.Message) {
			continue
		}
		kind := corev1.EventTypeNormal
		if now.Status == metav1.ConditionTrue {
			kind = corev1.EventTypeWarning
		}
		r.recorder.Eventf(after, nil, kind, now.Type+string(now.Status), "Control", "%s", loop.Shortened(now.Message, loop.MaxNote))
		logf.FromContext(ctx).Info("fleet control", "condition", now.Type, "status", now.Status, "reason", now.Reason, "message", now.Message)
	}
}

// withheldGauge counts the servers from which something is withheld.
type withheldGauge struct{ counters *counters }

var withheldDesc = prometheus.NewDesc("metalaw_servers_withheld",
	"Servers from which something that their state asks for is held back, by reason.", []string{"reason"}, nil)

// Describe implements prometheus.Collector.
func (withheldGauge) Describe(ch chan<- *prometheus.Desc) { ch <- withheldDesc }

// Collect implements prometheus.Collector.
func (w withheldGauge) Collect(ch chan<- prometheus.Metric) {
	count := w.counters.withheldBy()
	for _, reason := range []string{
		v1alpha1.ReasonFrozen, v1alpha1.ReasonBreakerTripped, v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonObserveOnly, v1alpha1.ReasonStarting,
	} {
		ch <- prometheus.MustNewConstMetric(withheldDesc, prometheus.GaugeValue, float64(count[reason]), reason)
	}
}
