// SPDX-License-Identifier: Apache-2.0

// Package collectors counts, whenever it is scraped, what alerts want to know of stored objects, so that the figures are right
// after a restart and on every replica. Figures about servers are the server controller's.
package collectors

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/freeze"
)

// limit is the time that one scrape may take.
const limit = 10 * time.Second

var (
	claims = prometheus.NewDesc("metalaw_claims_abnormal",
		"ServerClaims with an abnormal condition, by its type and reason: Stalled that is True, and Ready that is "+
			"False on a claim that is bound or whose server's BMC cannot be used. What no claim has is left out.",
		[]string{"condition", "reason"}, nil)
	revisions = prometheus.NewDesc("metalaw_policy_revisions_abnormal",
		"PolicyRevisions whose condition Compiled or Verified is not True, by its type and reason. What no revision has is left out.",
		[]string{"condition", "reason"}, nil)
	breaker = prometheus.NewDesc("metalaw_breaker_tripped",
		"1 while the breaker of the FleetControl holds the fleet back, else 0.", nil, nil)
	wipes = prometheus.NewDesc("metalaw_wipes",
		"Machines by the state of their last wipe; those that were never wiped are left out.", []string{"state"}, nil)
	wiped = prometheus.NewDesc("metalaw_wipe_last_verified_timestamp_seconds",
		"When the last wipe of any machine was verified, in seconds since 1970; 0 where none was.", nil, nil)
	voided = prometheus.NewDesc("metalaw_agent_entries_voided",
		"Machines for which two agents with different keys reported in one lifecycle entry, until an agent reports in the next one.", nil, nil)
)

// figures is the collector.
type figures struct{ reader client.Reader }

// New makes the collector. reader should be the cache.
func New(reader client.Reader) prometheus.Collector { return &figures{reader: reader} }

// Describe implements prometheus.Collector.
func (*figures) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{claims, revisions, breaker, wipes, wiped, voided} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (f *figures) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for desc, collect := range map[*prometheus.Desc]func(context.Context, chan<- prometheus.Metric) error{
		claims: f.claims, revisions: f.revisions, breaker: f.breaker, wipes: f.wipes,
	} {
		if err := collect(ctx, to); err != nil {
			to <- prometheus.NewInvalidMetric(desc, err)
		}
	}
}

func (f *figures) claims(ctx context.Context, to chan<- prometheus.Metric) error {
	var list v1alpha1.ServerClaimList
	if err := f.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	found := tally{}
	for i := range list.Items {
		bound := list.Items[i].Status.Phase == v1alpha1.PhaseBound
		for _, c := range list.Items[i].Status.Conditions {
			stalled := c.Type == v1alpha1.ConditionStalled && c.Status == metav1.ConditionTrue
			unready := c.Type == v1alpha1.ConditionReady && c.Status == metav1.ConditionFalse
			if stalled || unready && (bound || c.Reason == v1alpha1.ReasonBMCUnreachable) {
				found[[2]string{c.Type, c.Reason}]++
			}
		}
	}
	found.send(claims, to)
	return nil
}

func (f *figures) revisions(ctx context.Context, to chan<- prometheus.Metric) error {
	var list policyv1alpha1.PolicyRevisionList
	if err := f.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	found := tally{}
	for i := range list.Items {
		for _, c := range list.Items[i].Status.Conditions {
			watched := c.Type == policyv1alpha1.ConditionCompiled || c.Type == policyv1alpha1.ConditionVerified
			if watched && c.Status != metav1.ConditionTrue {
				found[[2]string{c.Type, c.Reason}]++
			}
		}
	}
	found.send(revisions, to)
	return nil
}

func (f *figures) breaker(ctx context.Context, to chan<- prometheus.Metric) error {
	control := &policyv1alpha1.FleetControl{}
	err := f.reader.Get(ctx, types.NamespacedName{Name: policyv1alpha1.FleetControlName}, control)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	value := 0.0
	if err == nil && freeze.Tripped(control) {
		value = 1
	}
	to <- prometheus.MustNewConstMetric(breaker, prometheus.GaugeValue, value)
	return nil
}

func (f *figures) wipes(ctx context.Context, to chan<- prometheus.Metric) error {
	var list policyv1alpha1.ServerInventoryList
	if err := f.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	count := map[policyv1alpha1.WipeState]int{
		policyv1alpha1.WipeRunning: 0, policyv1alpha1.WipeVerified: 0, policyv1alpha1.WipeFailed: 0,
	}
	var last time.Time
	conflicts := 0
	for i := range list.Items {
		if e := list.Items[i].Enrolment; e != nil && e.Voided {
			conflicts++
		}
		wipe := list.Items[i].Wipe
		if wipe == nil {
			continue
		}
		count[wipe.State]++
		if wipe.State == policyv1alpha1.WipeVerified && wipe.UpdatedAt.After(last) {
			last = wipe.UpdatedAt.Time
		}
	}
	for state, n := range count {
		to <- prometheus.MustNewConstMetric(wipes, prometheus.GaugeValue, float64(n), string(state))
	}
	to <- prometheus.MustNewConstMetric(voided, prometheus.GaugeValue, float64(conflicts))
	seconds := 0.0
	if !last.IsZero() {
		seconds = float64(last.UnixMilli()) / 1000
	}
	to <- prometheus.MustNewConstMetric(wiped, prometheus.GaugeValue, seconds)
	return nil
}

// tally counts objects by the type and reason of a condition.
type tally map[[2]string]int

func (t tally) send(desc *prometheus.Desc, to chan<- prometheus.Metric) {
	for c, n := range t {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), c[0], c[1])
	}
}
