// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

func TestAMachineThatNeverComesOnIsAskedLessAndLess(t *testing.T) {
	for name, restarts := range map[string]bool{"by one manager": false, "by managers that come and go": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				m.obeys = deaf
				w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
				for range 24 {
					w.manager.run(15 * time.Minute)
					if restarts {
						w.start()
					}
				}
				gaps := m.gaps("On")
				for i, gap := range gaps {
					want := min(testPowerGrace<<i, 30*time.Minute)
					if late := gap - want; late < 0 || late > want/8+20*time.Second {
						t.Errorf("asked again after %s, want %s", gap, want)
					}
				}
				if n := len(gaps); n < 12 || n > 16 {
					t.Errorf("asked %d times again in six hours", n)
				}
			})
		})
	}
}

func TestWhatWasAskedForInVainBeginsAnew(t *testing.T) {
	former := func(change ...func(*v1alpha1.PowerRequest)) *scope {
		return newScope(t, "Reserved", func(v *scope) {
			r := &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionOn, AskedAt: metav1.NewMicroTime(noon.Add(-time.Minute)), Attempts: 4}
			for _, c := range change {
				c(r)
			}
			v.server.Status.Lifecycle.Request = r
			v.Cache = newCache(nil, func(string) {})
		})
	}
	at := metav1.NewMicroTime(noon)
	for name, c := range map[string]struct {
		scope *scope
		want  int32
	}{
		"not after one that did not show":       {former(), 5},
		"after one that nobody wanted any more": {former(func(r *v1alpha1.PowerRequest) { r.Attempts = 0 }), 1},
		"after one that came true":              {former(func(r *v1alpha1.PowerRequest) { r.ShownAt = &at }), 1},
		"after another":                         {former(func(r *v1alpha1.PowerRequest) { r.Action = v1alpha1.PowerActionForceOff }), 1},
		"after one of a former entry":           {former(func(r *v1alpha1.PowerRequest) { r.AskedAt = metav1.NewMicroTime(noon.Add(-2 * time.Hour)) }), 1},
	} {
		t.Run(name, func(t *testing.T) {
			defer c.scope.Cache.Close()
			if got := c.scope.seen.Requested().Attempt(v1alpha1.PowerActionOn); got != c.want {
				t.Errorf("attempt %d, want %d", got, c.want)
			}
		})
	}
}

func TestWhenEachPowerChangeWasAskedForLastIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := inWorld(t, newMachine(redfish.PowerOff), reserved(v1alpha1.PowerOn)...)
		w.manager.run(time.Minute)
		on := w.server().Status.Lifecycle.Request.AskedAt
		w.machine.obeys = func(m *machine, action redfish.PowerAction) {
			if action == redfish.ActionForceOff {
				m.shows.Power = redfish.PowerOff
			}
		}
		w.claims(v1alpha1.PowerOff)
		w.manager.run(time.Hour)
		l := w.server().Status.Lifecycle
		if len(l.Begun) != 2 || l.Begun[0] != (v1alpha1.BegunAction{Action: "PowerOn", At: l.Begun[0].At}) || !l.Begun[0].At.Equal(&on) ||
			l.Begun[1].Action != "ForcedOff" || !l.Begun[1].At.Equal(&l.Request.AskedAt) {
			t.Errorf("%+v after a power-on at %v and %+v", l.Begun, on, l.Request)
		}
	})
}

func TestAMachineThatCameOnAndGoesOffIsSwitchedOnAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.obeys = deaf // its rack has no power
		w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
		w.manager.run(40 * time.Minute)
		if n := w.server().Status.Lifecycle.Request.Attempts; n != 6 {
			t.Fatalf("asked %d times", n)
		}
		m.will(0, redfish.PowerOn)
		w.manager.run(5 * time.Minute)
		if got := w.request(); got != "On shown" {
			t.Fatalf("recorded is %q", got)
		}
		before := len(m.gaps("On"))
		m.will(0, redfish.PowerOff)
		w.manager.run(5 * time.Minute)
		if again := len(m.gaps("On")) - before; again < 1 {
			t.Errorf("asked %d times in five minutes", again)
		}
	})
}
