// SPDX-License-Identifier: Apache-2.0

package review

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The verdicts that are counted.
const (
	verdictAllowed = "allowed"
	verdictDenied  = "denied"
	verdictError   = "error"
)

// Metrics count the answers of admission.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewMetrics registers the metrics, or shares those that are registered already.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "metalaw_admission_requests_total",
			Help: "Validating admission reviews by kind and verdict: allowed, denied, or error where a look-up failed."},
			[]string{"kind", "verdict"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "metalaw_admission_duration_seconds",
			Help: "Time taken to decide a validating admission review.", Buckets: prometheus.ExponentialBuckets(1e-4, 2, 14)},
			[]string{"kind"}),
	}
	var already prometheus.AlreadyRegisteredError
	if err := registry.Register(m.requests); errors.As(err, &already) {
		m.requests = already.ExistingCollector.(*prometheus.CounterVec)
	} else if err != nil {
		return nil, err
	}
	if err := registry.Register(m.duration); errors.As(err, &already) {
		m.duration = already.ExistingCollector.(*prometheus.HistogramVec)
	} else if err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Metrics) observe(kind, verdict string, took time.Duration) {
	m.requests.WithLabelValues(kind, verdict).Inc()
	m.duration.WithLabelValues(kind).Observe(took.Seconds())
}
