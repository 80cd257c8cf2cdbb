// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	register = promauto.With(metrics.Registry)

	claimsPending = register.NewGaugeVec(prometheus.GaugeOpts{
		Name: "metalaw_claims_pending",
		Help: "Claims without a server, by the reason of their condition Bound.",
	}, []string{"reason"})
	bindings       = counter("metalaw_claim_bindings_total", "Claims that were given a server.")
	bindingSeconds = seconds("metalaw_claim_binding_seconds",
		"Time from when a claim was first seen as pending until it and its server named each other.", 0.005)
	lostRaces = counter("metalaw_claim_lost_races_total",
		"Reservations refused because the server had changed since it was chosen.")
	evaluations = counter("metalaw_claim_evaluations_total",
		"Times that the selection policy was asked to choose; claims that ask for the same share one.")
	unjudged = counter("metalaw_claim_servers_unjudged_total",
		"Servers for which the selection policy could not be evaluated, each time that it was asked about them.")
	undone = counter("metalaw_claim_bindings_undone_total",
		"Reservations taken back because their claim had gone before it was bound.")
	passSeconds = seconds("metalaw_scheduler_pass_seconds", "Time that one pass over the pending claims took.", 0.0005)
)

func counter(name, help string) prometheus.Counter {
	return register.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func seconds(name, help string, first float64) prometheus.Histogram {
	return register.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(first, 4, 10)})
}

func init() {
	for _, reason := range Reasons() {
		claimsPending.WithLabelValues(reason).Set(0)
	}
}
