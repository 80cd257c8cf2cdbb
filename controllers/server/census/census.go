// SPDX-License-Identifier: Apache-2.0

// Package census counts servers by state and by abnormal condition for the metrics.
package census

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

// states counts servers by state, and by what is wrong with them, whenever it is scraped, so that the figures are right
// after a restart and a state without servers says zero.
type states struct {
	reader client.Reader
	active func() *bundle.Bundle
	desc   *prometheus.Desc
	// abnormal counts the conditions that somebody has to look at.
	abnormal *prometheus.Desc
}

// abnormalStatus is the status in which a condition wants somebody's eye.
var abnormalStatus = map[string]metav1.ConditionStatus{
	v1alpha1.ConditionStalled:          metav1.ConditionTrue,
	v1alpha1.ConditionPolicyHalted:     metav1.ConditionTrue,
	v1alpha1.ConditionClaimMissing:     metav1.ConditionTrue,
	v1alpha1.ConditionIdentityMismatch: metav1.ConditionTrue,
	v1alpha1.ConditionPolicyBehind:     metav1.ConditionTrue,
	v1alpha1.ConditionBMCReachable:     metav1.ConditionFalse,
}

// New makes a collector of servers by state and by abnormal condition. reader should be the cache; active is the bundle in force, whose
// states say zero where they have no server.
func New(reader client.Reader, active func() *bundle.Bundle) prometheus.Collector {
	return &states{reader: reader, active: active, desc: prometheus.NewDesc("metalaw_servers",
		"Servers by lifecycle state; none stands for a server that has no state yet.", []string{"state"}, nil),
		abnormal: prometheus.NewDesc("metalaw_servers_abnormal",
			"Servers with a condition that wants somebody's eye, by its type and reason: Stalled, PolicyHalted, ClaimMissing, "+
				"IdentityMismatch or PolicyBehind that is True, BMCReachable that is False. What no server has is left out.",
			[]string{"condition", "reason"}, nil)}
}

// Describe implements prometheus.Collector.
func (s *states) Describe(to chan<- *prometheus.Desc) {
	to <- s.desc
	to <- s.abnormal
}

// Collect implements prometheus.Collector.
func (s *states) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var servers v1alpha1.ServerList
	if err := s.reader.List(ctx, &servers, client.UnsafeDisableDeepCopy); err != nil {
		to <- prometheus.NewInvalidMetric(s.desc, err)
		return
	}
	counts := map[string]int{"none": 0}
	for _, name := range s.active().Lifecycle.States() {
		counts[string(name)] = 0
	}
	abnormal := map[[2]string]int{}
	for i := range servers.Items {
		state := string(servers.Items[i].Status.State)
		if state == "" {
			state = "none"
		}
		counts[state]++
		for _, c := range servers.Items[i].Status.Conditions {
			if status, watched := abnormalStatus[c.Type]; watched && c.Status == status {
				abnormal[[2]string{c.Type, c.Reason}]++
			}
		}
	}
	for state, n := range counts {
		to <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, float64(n), state)
	}
	for c, n := range abnormal {
		to <- prometheus.MustNewConstMetric(s.abnormal, prometheus.GaugeValue, float64(n), c[0], c[1])
	}
}
