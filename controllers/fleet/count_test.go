// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

func TestEveryBudgetIsCountedAlsoWhereNobodyWaits(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	server := func(name, rack string, change func(*v1alpha1.LifecycleStatus)) v1alpha1.Server {
		s := v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"rack": rack}}}
		s.Status.Lifecycle = &v1alpha1.LifecycleStatus{}
		change(s.Status.Lifecycle)
		return s
	}
	on := func(ago time.Duration) func(*v1alpha1.LifecycleStatus) {
		return func(l *v1alpha1.LifecycleStatus) {
			l.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionOn, AskedAt: metav1.NewMicroTime(now.Add(-ago))}
		}
	}
	wiped := func(l *v1alpha1.LifecycleStatus) {
		l.Credential = &v1alpha1.ProbeCredential{Purpose: v1alpha1.ProbePurposeWipe}
	}
	got := Count([]policyv1alpha1.Budget{
		{Name: "inrush", Action: policyv1alpha1.ActionPowerOn, Max: new(int32(4)), Per: "rack"},
		{Name: "wipes", Action: policyv1alpha1.ActionWipe, Max: new(int32(2))},
	}, []v1alpha1.Server{
		server("a", "r1", on(time.Minute)), server("b", "r1", on(time.Hour)), server("c", "r2", wiped),
	}, nil, now)
	rest := Count([]policyv1alpha1.Budget{
		{Name: "r1", Action: policyv1alpha1.ActionPowerOn, Max: new(int32(4)), Per: "rack",
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "r1"}}},
	}, []v1alpha1.Server{server("a", "r1", on(time.Minute)), server("c", "r2", wiped)}, nil, now)
	if diff := cmp.Diff([]policyv1alpha1.BudgetUsage{{Name: "r1", Value: "r1", Used: 1}}, rest); diff != "" {
		t.Errorf("racks that the budget does not cover: - want, + got:\n%s", diff)
	}
	want := []policyv1alpha1.BudgetUsage{
		{Name: "inrush", Value: "r1", Used: 1}, {Name: "inrush", Value: "r2", Used: 0}, {Name: "wipes", Used: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}
