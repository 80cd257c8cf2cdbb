// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/maintenance"
)

// scrapeLimit is the time that one scrape may take.
const scrapeLimit = 10 * time.Second

var (
	byState = prometheus.NewDesc("metalaw_maintenance",
		"ServerMaintenances by state and by the reason for which they wait, fail or are not as they ask; empty where there is none.",
		[]string{"state", "reason"}, nil)
	oldestWait = prometheus.NewDesc("metalaw_maintenance_oldest_wait_seconds",
		"For how long the ServerMaintenance that has waited longest for a reason has done so.", []string{"reason"}, nil)
	overdueCount = prometheus.NewDesc("metalaw_maintenance_overdue",
		"ServerMaintenances that hold their servers longer than was expected.", nil, nil)
	windowOpens = prometheus.NewDesc("metalaw_maintenance_window_opens_seconds",
		"In how many seconds a window of the policy in force opens; 0 while it is open.", []string{"window"}, nil)
)

// figures counts the stored maintenances whenever it is scraped, so that the figures are right on every replica and after a restart.
type figures struct {
	reader client.Reader
	policy func() (*maintenance.Policy, string)
	now    func() time.Time
}

// Describe implements prometheus.Collector.
func (*figures) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{byState, oldestWait, overdueCount, windowOpens} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (f *figures) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	var list v1alpha1.ServerMaintenanceList
	if err := f.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		to <- prometheus.NewInvalidMetric(byState, err)
		return
	}
	now := f.now()
	count, waits, overdue := map[[2]string]int{}, map[string]time.Duration{}, 0
	for i := range list.Items {
		m := &list.Items[i]
		count[[2]string{string(m.Status.State), reasonOf(&m.Status)}]++
		if conditionOf(&m.Status, v1alpha1.ConditionOverdue).Status == metav1.ConditionTrue {
			overdue++
		}
		c := conditionOf(&m.Status, v1alpha1.ConditionGranted)
		if m.Status.State == v1alpha1.ServerMaintenanceStatePending && c.Status == metav1.ConditionFalse && m.DeletionTimestamp.IsZero() {
			waits[c.Reason] = max(waits[c.Reason], now.Sub(c.LastTransitionTime.Time))
		}
	}
	for key, n := range count {
		to <- prometheus.MustNewConstMetric(byState, prometheus.GaugeValue, float64(n), key[0], key[1])
	}
	for reason, d := range waits {
		to <- prometheus.MustNewConstMetric(oldestWait, prometheus.GaugeValue, d.Seconds(), reason)
	}
	to <- prometheus.MustNewConstMetric(overdueCount, prometheus.GaugeValue, float64(overdue))
	f.windows(to, now)
}

func (f *figures) windows(to chan<- prometheus.Metric, now time.Time) {
	policy, _ := f.policy()
	for i := range policy.Windows {
		one := policy.Windows[i]
		one.MatchLabels, one.When = nil, nil // whom it covers is another question
		seconds := 0.0
		alone := &maintenance.Policy{Windows: []maintenance.Window{one}}
		if opening := alone.Window(&maintenance.Facts{}, now, 0); !opening.Open {
			seconds = opening.Opens.Sub(now).Seconds()
		}
		to <- prometheus.MustNewConstMetric(windowOpens, prometheus.GaugeValue, seconds, one.Name)
	}
}

// reasonOf is why a maintenance waits, failed or is not served; empty where it is as it asks.
func reasonOf(status *v1alpha1.ServerMaintenanceStatus) string {
	if c := conditionOf(status, v1alpha1.ConditionGranted); c.Status == metav1.ConditionFalse {
		return c.Reason
	}
	if c := conditionOf(status, v1alpha1.ConditionServed); c.Status == metav1.ConditionFalse {
		return c.Reason
	}
	return ""
}
