// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

var (
	activeInfo = prometheus.NewDesc("metalaw_policy_active_info",
		"1 for the policy revision in force, as this manager knows it.", []string{"bundle", "version", "revision"}, nil)
	promotionMissing = prometheus.NewDesc("metalaw_policy_promotion_missing",
		"1 while no policy governs, because revisions were restored and none was promoted in this cluster; else 0.", nil, nil)
	revisionsHeld = prometheus.NewDesc("metalaw_policy_revisions_held",
		"Policy revisions in use that this manager refuses, so that nothing moves under them.", nil, nil)
	headsRefused = prometheus.NewDesc("metalaw_policy_heads_refused",
		"ConfigMaps with a bundle that are to be more than a draft and change nothing, by the reason of the event on them. The leader counts; "+
			"what none has is left out.", []string{"reason"}, nil)
	canaryPaused = prometheus.NewDesc("metalaw_policy_canary_paused",
		"1 for a canary that has paused itself, 0 for one that has not.", []string{"revision"}, nil)
	canaryWait = prometheus.NewDesc("metalaw_policy_canary_wait_seconds",
		"For how long servers that ask have found no place under a canary, because those before them have not shown yet how they fare; "+
			"0 where none asks. The leader counts, and begins anew.", []string{"revision"}, nil)
	awaitingReplicas = prometheus.NewDesc("metalaw_policy_awaiting_replicas",
		"1 for a revision whose promotion, or whose canary, waits until every running manager has compiled it.", []string{"revision"}, nil)
)

// collector reads what is in force whenever it is scraped, so that the figures are right after a restart.
type collector struct {
	reconciler *reconciler
	reader     client.Reader
}

// Describe implements prometheus.Collector.
func (*collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		activeInfo, promotionMissing, revisionsHeld, headsRefused, canaryPaused, canaryWait, awaitingReplicas,
	} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *collector) Collect(to chan<- prometheus.Metric) {
	store := m.reconciler.Store
	active := store.Active()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	if store.Missing() != "" {
		gauge(promotionMissing, 1)
	} else {
		gauge(promotionMissing, 0)
		gauge(activeInfo, 1, active.Name, active.Version, active.Revision.Name)
	}
	gauge(revisionsHeld, float64(len(store.rule.Load().held)))
	if refused := m.reconciler.refused.Load(); refused != nil {
		for reason, n := range *refused {
			gauge(headsRefused, float64(n), reason)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	var list policyv1alpha1.PolicyRevisionList
	if err := m.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		to <- prometheus.NewInvalidMetric(canaryPaused, err)
		return
	}
	waits := m.reconciler.Probation.Waits()
	for i := range list.Items {
		r := &list.Items[i]
		if c := r.Status.Canary; c != nil {
			value := 0.0
			if c.Paused {
				value = 1
			}
			gauge(canaryPaused, value, r.Name)
			gauge(canaryWait, waits[r.Name].Seconds(), r.Name)
		}
		if active := meta.FindStatusCondition(r.Status.Conditions, policyv1alpha1.ConditionActive); active != nil &&
			active.Reason == policyv1alpha1.ReasonAwaitingReplicas {
			gauge(awaitingReplicas, 1, r.Name)
		}
	}
}
