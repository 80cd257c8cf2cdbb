// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

const year = 365 * 24 * time.Hour

// counts is the counted time of a process that continues from some seconds, by its monotonic clock.
func counts(from counted.Time) *counted.Clock {
	start := time.Now()
	c := counted.NewClock(start, func() time.Duration { return time.Since(start) })
	c.Continue(from * counted.Time(time.Second))
	return c
}

// steps sets the wall clock ahead, or back. A bubble has one clock, which stays the monotonic one of the process: so all that
// is stored moves the other way.
func (w *world) steps(by time.Duration) {
	moved := func(at *metav1.MicroTime) {
		if at != nil && !at.IsZero() {
			*at = metav1.NewMicroTime(at.Add(-by))
		}
	}
	edit(w, "a", &v1alpha1.Server{}, func(s *v1alpha1.Server) {
		if at, err := time.Parse(time.RFC3339, s.Annotations[v1alpha1.ReleasedAtAnnotation]); err == nil {
			s.Annotations[v1alpha1.ReleasedAtAnnotation] = at.Add(-by).Format(time.RFC3339)
		}
	})
	s := w.server()
	l := s.Status.Lifecycle
	moved(&l.EnteredAt)
	moved(l.SeenOnAt)
	moved(l.BootedAt)
	if l.Request != nil {
		moved(&l.Request.AskedAt)
	}
	if l.Clock != nil {
		moved(&l.Clock.AsOf)
	}
	if err := w.api.Status().Update(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
}

// leads is a process that leads next, and continues from what its predecessor counted.
func (w *world) leads(from *counted.Clock) *process {
	const lost = counted.Time(5 * time.Second) // since the last heartbeat
	p := w.start()
	p.NoReleaseGrace, p.Counted = false, counts((from.Now()-lost)/counted.Time(time.Second))
	return p
}

func TestNoStepOfAClockEndsOrExtendsAGrace(t *testing.T) {
	for name, c := range map[string]struct {
		first, second time.Duration // how far the wall clock is ahead: at first, and 15 s later
		restarts      bool
	}{
		"an hour forward in a process":    {0, time.Hour, false},
		"an hour back in a process":       {0, -time.Hour, false},
		"a year forward in a process":     {0, year, false},
		"a year back in a process":        {0, -year, false},
		"an hour forward between two":     {0, time.Hour, true},
		"an hour back between two":        {0, -time.Hour, true},
		"a year forward between two":      {0, year, true},
		"a year back between two":         {0, -year, true},
		"recorded a year ahead":           {year, 0, true},
		"recorded a year ahead, in one":   {year, 0, false},
		"without a step, and one restart": {0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := counts(500)
				ended := func(s *v1alpha1.Server) {
					policies.RecordRelease(s, "uid-web", time.Now().Add(c.first), clock.Now())
					s.Status.Lifecycle.Marks = []string{"Dirty", "Managed"}
				}
				w := inWorld(t, newMachine(redfish.PowerOn), serverIn(v1alpha1.StateReserved, holdsWeb, ended))
				p := w.leads(clock)
				p.Counted = clock
				p.run(15 * time.Second)
				if w.steps(c.second - c.first); c.restarts {
					p = w.leads(clock)
				}
				p.run(4*time.Minute + 40*time.Second)
				if s := w.server(); s.Status.State != v1alpha1.StateReserved || s.Spec.ServerClaimRef == nil {
					t.Fatalf("before the grace was over: %s, %s", s.Status.State, w.request())
				}
				p.run(2 * time.Minute)
				if s := w.server(); s.Status.State != v1alpha1.StateCleanup {
					t.Errorf("after seven minutes: %s, %s, %+v", s.Status.State, w.request(), s.Status.Conditions)
				}
			})
		})
	}
}

func TestAReleaseOfAFormerBuildIsStoredOnceWhereItIsFirstSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := func(s *v1alpha1.Server) {
			released(s) // an hour ago by a clock that may have stepped
			s.Status.Lifecycle.Marks = []string{"Dirty", "Managed"}
		}
		w := inWorld(t, newMachine(redfish.PowerOn), serverIn(v1alpha1.StateReserved, holdsWeb, ended))
		w.manager.NoReleaseGrace, w.manager.Counted = false, counted.NewClock(time.Now(), func() time.Duration { return 0 })
		w.manager.run(10 * time.Minute)
		if s := w.server(); s.Status.State != v1alpha1.StateReserved || s.Annotations[v1alpha1.ReleasedCountedAnnotation] != "" {
			t.Fatalf("before the count was read: %s, %v", s.Status.State, s.Annotations)
		}
		clock := counts(500)
		p := w.leads(clock)
		p.run(4 * time.Minute)
		s := w.server()
		if s.Status.State != v1alpha1.StateReserved || s.Annotations[v1alpha1.ReleasedCountedAnnotation] != "8m15s" {
			t.Fatalf("within the grace: %s, %v", s.Status.State, s.Annotations)
		}
		w.leads(clock).run(2 * time.Minute)
		if s := w.server(); s.Status.State != v1alpha1.StateCleanup {
			t.Errorf("after the grace: %s", s.Status.State)
		}
	})
}

// TestNoStepOfAClockCutsAShutdownShort lets a claim that ended wait for its operating system, which takes its time.
func TestNoStepOfAClockCutsAShutdownShort(t *testing.T) {
	for name, step := range map[string]time.Duration{"an hour forward": time.Hour, "an hour back": -time.Hour, "a year forward": year,
		"a year back": -year, "none": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				m.obeys = deaf
				w := inWorld(t, m, reserved(v1alpha1.PowerOff)...)
				clock := counts(500)
				w.manager.Counted = clock
				w.manager.run(30 * time.Second)
				m.wants(t, "at once", "GracefulShutdown")
				w.steps(step)
				p := w.leads(clock)
				p.run(plan.ShutdownGrace - 40*time.Second)
				if slices.Contains(m.asked(), "ForceOff") {
					t.Fatal("the power was cut within the time of the operating system")
				}
				p.run(2 * time.Minute)
				if !slices.Contains(m.asked(), "ForceOff") {
					t.Errorf("after that it was not cut: %v", m.asked())
				}
			})
		})
	}
}

// TestAnAgentIsSilentFromWhenItsLastWordWasSeen has a registry whose clock is a year off.
func TestAnAgentIsSilentFromWhenItsLastWordWasSeen(t *testing.T) {
	for name, off := range map[string]time.Duration{"a year ahead": year, "a year behind": -year, "right": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inventory := &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: machineUUID}, Wipe: &policyv1alpha1.WipeReport{
					Entry: 7, State: policyv1alpha1.WipeRunning, UpdatedAt: metav1.NewMicroTime(time.Now().Add(off))}}
				w := inWorld(t, newMachine(redfish.PowerOn), serverIn(v1alpha1.StateError), inventory)
				w.manager.Counted = counts(500)
				running := func() bool {
					v, err := w.manager.subject.Observe(t.Context(), w.server())
					if err != nil {
						t.Fatal(err)
					}
					return v.(*scope).seen.Facts.Wipe.Running
				}
				if !running() {
					t.Error("it is silent at once")
				}
				if time.Sleep(policyv1alpha1.WipeSilence - time.Second); !running() {
					t.Error("it is silent too early")
				}
				if time.Sleep(2 * time.Second); running() {
					t.Error("it is never silent")
				}
			})
		})
	}
}
