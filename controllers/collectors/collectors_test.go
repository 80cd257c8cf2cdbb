// SPDX-License-Identifier: Apache-2.0

package collectors

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// gathered are the figures of a cluster with these objects, by name and labels.
func gathered(t *testing.T, objects ...client.Object) map[string]float64 {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, policyv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(New(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build())); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			key := f.GetName()
			for _, l := range m.GetLabel() {
				key += " " + l.GetValue()
			}
			got[key] = m.GetGauge().GetValue()
		}
	}
	return got
}

// conditions are written as "Type Status Reason".
func conditions(texts ...string) []metav1.Condition {
	var all []metav1.Condition
	for _, text := range texts {
		words := strings.Fields(text)
		all = append(all, metav1.Condition{Type: words[0], Status: metav1.ConditionStatus(words[1]), Reason: words[2]})
	}
	return all
}

func claim(name string, phase v1alpha1.Phase, texts ...string) client.Object {
	return &v1alpha1.ServerClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name},
		Status: v1alpha1.ServerClaimStatus{Phase: phase, Conditions: conditions(texts...)}}
}

func revision(name string, texts ...string) client.Object {
	return &policyv1alpha1.PolicyRevision{ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: policyv1alpha1.PolicyRevisionStatus{Conditions: conditions(texts...)}}
}

func inventory(name string, state policyv1alpha1.WipeState, at int64) client.Object {
	i := &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if state != "" {
		i.Wipe = &policyv1alpha1.WipeReport{State: state, UpdatedAt: metav1.NewMicroTime(time.Unix(at, 0))}
	}
	return i
}

func TestAnEmptyClusterHasFiguresToCompareWith(t *testing.T) {
	want := map[string]float64{
		"metalaw_agent_entries_voided": 0,
		"metalaw_breaker_tripped":      0, "metalaw_wipe_last_verified_timestamp_seconds": 0,
		"metalaw_wipes Failed": 0, "metalaw_wipes Running": 0, "metalaw_wipes Verified": 0,
	}
	if diff := cmp.Diff(want, gathered(t)); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

func TestWhatIsWrongIsCountedByReason(t *testing.T) {
	trip := metav1.NewMicroTime(time.Unix(100, 0))
	want := map[string]float64{
		"metalaw_agent_entries_voided":                       1,
		"metalaw_breaker_tripped":                            1,
		"metalaw_claims_abnormal Ready ServerHalted":         1,
		"metalaw_claims_abnormal Ready BMCUnreachable":       1,
		"metalaw_claims_abnormal Stalled ServerHalted":       1,
		"metalaw_claims_abnormal Stalled InvalidSelector":    2,
		"metalaw_policy_revisions_abnormal Compiled Broken":  1,
		"metalaw_policy_revisions_abnormal Verified Unknown": 1,
		"metalaw_wipe_last_verified_timestamp_seconds":       2000,
		"metalaw_wipes Failed":                               1,
		"metalaw_wipes Running":                              0,
		"metalaw_wipes Verified":                             2,
	}
	got := gathered(t,
		claim("well", v1alpha1.PhaseBound, "Bound True Bound", "Ready True Running", "Stalled False Running"),
		claim("halted", v1alpha1.PhaseBound, "Ready False ServerHalted", "Stalled True ServerHalted"),
		claim("waits", v1alpha1.PhaseUnbound, "Ready False NotBound", "Stalled False NoServers"),
		claim("behind", v1alpha1.PhaseUnbound, "Ready False BMCUnreachable", "Bound False BMCUnreachable"),
		claim("nonsense", v1alpha1.PhaseUnbound, "Ready False NotBound", "Stalled True InvalidSelector"),
		claim("nonsense-too", v1alpha1.PhaseUnbound, "Ready False NotBound", "Stalled True InvalidSelector"),
		revision("good", "Compiled True Compiled", "Verified True Verified", "Active True Active"),
		revision("bad", "Compiled False Broken", "Verified Unknown Unknown", "Active False Superseded"),
		&policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: "voided"}, Enrolment: &policyv1alpha1.Enrolment{Voided: true}},
		&policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: "enrolled"}, Enrolment: &policyv1alpha1.Enrolment{}},
		inventory("new", "", 0), inventory("wiped", policyv1alpha1.WipeVerified, 1000), inventory("later", policyv1alpha1.WipeVerified, 2000),
		inventory("failed", policyv1alpha1.WipeFailed, 3000),
		&policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: "fleet"},
			Spec:   policyv1alpha1.FleetControlSpec{Breaker: &policyv1alpha1.Breaker{MaxPercent: 10}},
			Status: policyv1alpha1.FleetControlStatus{Trip: &policyv1alpha1.BreakerTrip{At: trip, Servers: 5, Of: 6}}},
	)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}
