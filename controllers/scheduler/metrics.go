// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	claimsPending = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "metalaw_claims_pending",
		Help: "Claims without a server, by the reason of their condition Bound.",
	}, []string{"reason"})
	bindings = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "metalaw_claim_bindings_total",
		Help: "Claims that were given a server.",
	})
	bindingSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "metalaw_claim_binding_seconds",
		Help:    "Time from when a claim was first seen as pending until it and its server named each other.",
		Buckets: prometheus.ExponentialBuckets(0.005, 4, 10),
	})
	lostRaces = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "metalaw_claim_lost_races_total",
		Help: "Reservations refused because the server had changed since it was chosen.",
	})
	evaluations = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "metalaw_claim_evaluations_total",
		Help: "Times that the selection policy was asked to choose; claims that ask for the same share one.",
	})
	unjudged = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "metalaw_claim_servers_unjudged_total",
		Help: "Servers for which the selection policy could not be evaluated, each time that it was asked about them.",
	})
	undone = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "metalaw_claim_bindings_undone_total",
		Help: "Reservations taken back because their claim had gone before it was bound.",
	})
	passSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "metalaw_scheduler_pass_seconds",
		Help:    "Time that one pass over the pending claims took.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 4, 10),
	})
)

func init() {
	metrics.Registry.MustRegister(claimsPending, bindings, bindingSeconds, lostRaces, evaluations, unjudged, undone, passSeconds)
	for _, reason := range Reasons() {
		claimsPending.WithLabelValues(reason).Set(0)
	}
}
