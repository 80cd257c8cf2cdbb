// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

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
