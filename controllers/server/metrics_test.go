// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/census"
	"github.com/metalaw/metalaw/policies"
)

func TestServersAreCountedByStateAndByWhatIsWrongWithThem(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server := func(name string, state v1alpha1.ServerState, conditions ...string) *v1alpha1.Server {
		s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.ServerStatus{State: state}}
		for _, text := range conditions {
			words := strings.Fields(text)
			s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: words[0], Status: metav1.ConditionStatus(words[1]), Reason: words[2]})
		}
		return s
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		server("new", ""),
		server("well", v1alpha1.StateAvailable, "BMCReachable True Connected", "Ready True Stable"),
		server("failed", v1alpha1.StateError, "BMCReachable True Connected", "Ready False WipeFailed", "Stalled True WipeFailed"),
		server("failed-too", v1alpha1.StateError, "Stalled True WipeFailed"),
		server("dark", v1alpha1.StateReserved, "BMCReachable False ConnectionFailed", "Reconciling True Moving"),
		server("halted", v1alpha1.StateReserved, "PolicyHalted True SafetyRule", "Stalled True SafetyRule", "IdentityMismatch True OtherSystem"),
		server("orphan", v1alpha1.StateReserved, "ClaimMissing True ClaimNotFound", "Stalled True ClaimNotFound"),
		server("operated", v1alpha1.StateReserved, "OperationDone False Failed", "Stalled False Stable"),
	).Build()
	embedded, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(census.New(api, governed{embedded}.Active)); err != nil {
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
			if value := m.GetGauge().GetValue(); value != 0 {
				got[key] = value
			}
		}
	}
	want := map[string]float64{
		"metalaw_servers none": 1, "metalaw_servers Available": 1, "metalaw_servers Error": 2, "metalaw_servers Reserved": 4,
		"metalaw_servers_abnormal Stalled WipeFailed":            2,
		"metalaw_servers_abnormal Stalled SafetyRule":            1,
		"metalaw_servers_abnormal Stalled ClaimNotFound":         1,
		"metalaw_servers_abnormal PolicyHalted SafetyRule":       1,
		"metalaw_servers_abnormal ClaimMissing ClaimNotFound":    1,
		"metalaw_servers_abnormal IdentityMismatch OtherSystem":  1,
		"metalaw_servers_abnormal BMCReachable ConnectionFailed": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
