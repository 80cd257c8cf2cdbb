// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are what the server controller counts.
type Metrics struct {
	transitions *prometheus.CounterVec
	halts       *prometheus.CounterVec
	adoptions   *prometheus.CounterVec
	decisions   prometheus.Histogram
}

// NewMetrics registers the metrics. It fails where they are registered already.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "metalaw_server_transitions_total",
			Help: "Moves of servers by the rule that made them."}, []string{"rule", "from", "to"}),
		halts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "metalaw_server_halts_total",
			Help: "Decisions that were halted, by cause and rule."}, []string{"cause", "rule"}),
		adoptions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "metalaw_server_adoptions_total",
			Help: "Servers that came under another policy revision, by what they came from: rest or halt."}, []string{"from"}),
		decisions: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "metalaw_decision_duration_seconds",
			Help: "Time taken to evaluate the policy for one server.", Buckets: prometheus.ExponentialBuckets(1e-6, 4, 10)}),
	}
	for _, c := range []prometheus.Collector{m.transitions, m.halts, m.adoptions, m.decisions} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
