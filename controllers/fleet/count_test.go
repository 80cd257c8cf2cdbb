// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"
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
	if diff := cmp.Diff([]Use{{BudgetUsage: policyv1alpha1.BudgetUsage{Name: "r1", Value: "r1", Used: 1}, Max: 4}}, rest); diff != "" {
		t.Errorf("racks that the budget does not cover: - want, + got:\n%s", diff)
	}
	want := []Use{
		{BudgetUsage: policyv1alpha1.BudgetUsage{Name: "inrush", Value: "r1", Used: 1}, Max: 4},
		{BudgetUsage: policyv1alpha1.BudgetUsage{Name: "inrush", Value: "r2", Used: 0}, Max: 4},
		{BudgetUsage: policyv1alpha1.BudgetUsage{Name: "wipes", Used: 1}, Max: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

func TestABudgetSaysWhenThereIsRoomAgain(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	begun := func(name string, ago time.Duration) v1alpha1.Server {
		s := v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name}}
		s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Request: &v1alpha1.PowerRequest{
			Action: v1alpha1.PowerActionOn, AskedAt: metav1.NewMicroTime(now.Add(-ago))}}
		return s
	}
	wiped := v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "w"}}
	wiped.Status.Lifecycle = &v1alpha1.LifecycleStatus{Credential: &v1alpha1.ProbeCredential{Purpose: v1alpha1.ProbePurposeWipe}}
	servers := []v1alpha1.Server{begun("a", time.Minute), begun("b", 4*time.Minute), begun("c", 9*time.Minute), wiped}
	for name, c := range map[string]struct {
		action policyv1alpha1.FleetAction
		max    int32
		want   time.Time
	}{
		"there is room":                      {policyv1alpha1.ActionPowerOn, 4, time.Time{}},
		"the first that counts ceases to":    {policyv1alpha1.ActionPowerOn, 3, now.Add(time.Minute)},
		"more count than are allowed":        {policyv1alpha1.ActionPowerOn, 1, now.Add(9 * time.Minute)},
		"none is ever allowed":               {policyv1alpha1.ActionPowerOn, 0, time.Time{}},
		"nobody knows how long a wipe takes": {policyv1alpha1.ActionWipe, 1, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Count([]policyv1alpha1.Budget{{Name: "b", Action: c.action, Max: &c.max}}, servers, nil, now)
			if len(got) != 1 || !got[0].FreeAt.Equal(c.want) {
				t.Errorf("%+v, want %s", got, c.want)
			}
		})
	}
}

func TestABudgetInPercentCountsTheServersThatItCovers(t *testing.T) {
	var servers []v1alpha1.Server
	for i := range 130 {
		rack := "r1"
		if i >= 100 {
			rack = "r2"
		}
		servers = append(servers, v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%d", i), Labels: map[string]string{"rack": rack}}})
	}
	wipe := func(b policyv1alpha1.Budget) policyv1alpha1.Budget {
		b.Name, b.Action = "b", policyv1alpha1.ActionWipe
		return b
	}
	r2 := &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "r2"}}
	for name, c := range map[string]struct {
		budget policyv1alpha1.Budget
		want   []int32
	}{
		"the share of the fleet, rounded down":           {wipe(policyv1alpha1.Budget{MaxPercent: new(int32(5))}), []int32{6}},
		"the share is larger than the number":            {wipe(policyv1alpha1.Budget{Max: new(int32(5)), MaxPercent: new(int32(5))}), []int32{6}},
		"the number is larger than the share":            {wipe(policyv1alpha1.Budget{Max: new(int32(9)), MaxPercent: new(int32(5))}), []int32{9}},
		"each rack has a share of its own servers":       {wipe(policyv1alpha1.Budget{MaxPercent: new(int32(10)), Per: "rack"}), []int32{10, 3}},
		"only the servers that the selector names count": {wipe(policyv1alpha1.Budget{MaxPercent: new(int32(10)), Selector: r2}), []int32{3}},
		"a share below one allows none":                  {wipe(policyv1alpha1.Budget{MaxPercent: new(int32(3)), Selector: r2}), []int32{0}},
		"neither a number nor a share allows none":       {wipe(policyv1alpha1.Budget{}), []int32{0}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int32
			for _, use := range Count([]policyv1alpha1.Budget{c.budget}, servers, nil, time.Now()) {
				got = append(got, use.Max)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v machines are allowed, want %v", got, c.want)
			}
		})
	}
}
