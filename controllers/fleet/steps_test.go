// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/counted"
)

// leading is a gate whose process began at noon, when so much was counted.
func leading(t *testing.T, now counted.Time, spec *policyv1alpha1.FleetControlSpec, servers ...*v1alpha1.Server) *Gate {
	t.Helper()
	clock := counted.NewClock(noon, func() time.Duration { return 0 })
	g := newGate(t, spec)
	g.counters.clock = clock
	for _, s := range servers {
		g.counters.see(s) // as a process does that waits for its turn
	}
	clock.Continue(now)
	return g
}

func TestNoStepOfAClockEmptiesOrFillsABudget(t *testing.T) {
	const tenHours, year = counted.Time(10 * time.Hour), 365 * 24 * time.Hour
	spec := &policyv1alpha1.FleetControlSpec{
		Budgets: []policyv1alpha1.Budget{{Name: "b", Action: "PowerOn", Max: ptr.To[int32](1)}},
	}
	trips := &policyv1alpha1.FleetControlSpec{Breaker: &policyv1alpha1.Breaker{MaxPercent: 50}}
	for name, c := range map[string]struct {
		step, ago time.Duration
		counts    bool
	}{
		"an hour forward":              {time.Hour, time.Minute, true},
		"a year forward":               {year, time.Minute, true},
		"an hour back":                 {-time.Hour, 11 * time.Minute, false},
		"a year back":                  {-year, 11 * time.Minute, false},
		"a year back within a window":  {-year, time.Minute, true},
		"none, after the window":       {0, 11 * time.Minute, false},
		"none, and within the window":  {0, 9 * time.Minute, true},
		"an hour forward, long before": {time.Hour, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			at, ago := metav1.NewMicroTime(noon.Add(-c.ago-c.step)), tenHours-counted.Time(c.ago)
			var all []*v1alpha1.Server
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				all = append(all, newServer(name, "z", func(s *v1alpha1.Server) {
					l := s.Status.Lifecycle
					s.Status.State, l.EnteredAt, l.EnteredCounted = v1alpha1.StateError, at, ago.Stored()
				}))
			}
			Begin(all[0].Status.Lifecycle, PowerOn, at, ago.Stored())
			if v := permit(t, leading(t, tenHours, spec, all...), all[1], PowerOn); v.Allowed == c.counts {
				t.Errorf("the budget: allowed %v: %s", v.Allowed, v.Message)
			}
			if v := permit(t, leading(t, tenHours, trips, all...), all[1], Wipe); (v.Reason == v1alpha1.ReasonBreakerTripped) != c.counts {
				t.Errorf("the breaker: %+v", v)
			}
		})
	}
}

// TestARecordAfterAStepBackIsTheLaterOne would else take a new power-on for one that was recorded before.
func TestARecordAfterAStepBackIsTheLaterOne(t *testing.T) {
	m := &machine{}
	m.begin(policyv1alpha1.ActionPowerOn, moment{noon, 100})
	g := grant{before: m.began[policyv1alpha1.ActionPowerOn]}
	if m.shows(policyv1alpha1.ActionPowerOn, g) {
		t.Error("the former record shows the grant")
	}
	m.begin(policyv1alpha1.ActionPowerOn, moment{at: noon}) // the same, as an operation has it
	if got := m.began[policyv1alpha1.ActionPowerOn].counted; got != 100 {
		t.Errorf("its count is %d", got)
	}
	m.begin(policyv1alpha1.ActionPowerOn, moment{noon.Add(-time.Hour), 200})
	if !m.shows(policyv1alpha1.ActionPowerOn, g) {
		t.Error("the later record does not")
	}
}

func TestAWipeCountsFromWhenItsLastWordWasSeen(t *testing.T) {
	now := noon
	c := &counters{now: func() time.Time { return now }}
	said := func(at time.Time) *policyv1alpha1.ServerInventory {
		return &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: "u"},
			Wipe: &policyv1alpha1.WipeReport{State: policyv1alpha1.WipeRunning, UpdatedAt: metav1.NewMicroTime(at)}}
	}
	first := said(noon.AddDate(1, 0, 0)) // by a registry whose clock is wrong
	if got := c.erasingSeen(first); !got.Equal(noon.Add(policyv1alpha1.WipeSilence)) {
		t.Errorf("at first until %s", got)
	}
	now = noon.Add(time.Minute)
	if got := c.erasingSeen(first); !got.Equal(noon.Add(policyv1alpha1.WipeSilence)) {
		t.Errorf("seen again until %s", got)
	}
	if got := c.erasingSeen(said(noon.AddDate(-1, 0, 0))); !got.Equal(now.Add(policyv1alpha1.WipeSilence)) {
		t.Errorf("after another word until %s", got)
	}
	if got := c.erasingSeen(&policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: "u"}}); !got.IsZero() || len(c.words) != 0 {
		t.Errorf("after its end until %s, %v", got, c.words)
	}
}
