// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/redfish"
)

// leavesError brings the server a from Error to Available, as a policy may after somebody's retry.
func (w *world) leavesError() {
	w.t.Helper()
	s := w.server()
	s.Status.State = v1alpha1.StateAvailable
	s.Status.Lifecycle.Entry++
	s.Status.Lifecycle.EnteredAt = metav1.NowMicro()
	if err := w.api.Status().Update(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
	w.manager.wake("a")
}

func TestTheLightThatErrorSwitchedOnGoesOffWithIt(t *testing.T) {
	byHand := func(led redfish.IndicatorLED) func(*world) {
		return func(w *world) {
			w.machine.mu.Lock()
			defer w.machine.mu.Unlock()
			w.machine.shows.LED = led
		}
	}
	asksFor := func(led v1alpha1.IndicatorLED) func(*world) {
		return func(w *world) {
			edit(w, "a", &v1alpha1.Server{}, func(s *v1alpha1.Server) { s.Spec.IndicatorLED = led })
		}
	}
	nothing := func(*world) {}
	for name, c := range map[string]struct {
		before redfish.IndicatorLED
		// during happens while the server is in Error, and after once it has left it.
		during, after func(*world)
		asked         []string
		shows         redfish.IndicatorLED
	}{
		"one that was off":                             {redfish.LEDOff, nothing, nothing, []string{"SetLED Blinking", "SetLED Off"}, redfish.LEDOff},
		"by a manager that began since":                {redfish.LEDOff, func(w *world) { w.start() }, nothing, []string{"SetLED Blinking", "SetLED Off"}, redfish.LEDOff},
		"but not one that blinked by somebody's hand":  {redfish.LEDBlinking, nothing, nothing, nil, redfish.LEDBlinking},
		"but not one that is asked for meanwhile":      {redfish.LEDOff, asksFor("Blinking"), nothing, []string{"SetLED Blinking"}, redfish.LEDBlinking},
		"nor one that was asked for and is no more":    {redfish.LEDOff, asksFor("Blinking"), asksFor(""), []string{"SetLED Blinking"}, redfish.LEDBlinking},
		"nor one that somebody switches on afterwards": {redfish.LEDOff, nothing, byHand(redfish.LEDLit), []string{"SetLED Blinking", "SetLED Off"}, redfish.LEDLit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				m.shines, m.shows.LED = true, c.before
				w := inWorld(t, m, serverIn(v1alpha1.StateError))
				w.manager.run(10 * time.Second)
				c.during(w)
				w.manager.run(10 * time.Second)
				w.leavesError()
				w.manager.run(10 * time.Minute)
				c.after(w)
				w.manager.run(10 * time.Minute)
				m.wants(t, "in the end", c.asked...)
				if m.shows.LED != c.shows {
					t.Errorf("the light is %s, want %s", m.shows.LED, c.shows)
				}
				if slices.Contains(w.server().Status.Lifecycle.Marks, "Located") {
					t.Error("the mark is kept")
				}
			})
		})
	}
}

// What is cordoned, by the manager for its faulty hardware or by a person, stays in its state, and no state but Error asks for
// a light.
func TestACordonLightsNothing(t *testing.T) {
	type cordon struct {
		state  v1alpha1.ServerState
		reason string
	}
	for _, c := range []cordon{{v1alpha1.StateAvailable, v1alpha1.UnclaimableFaulty}, {v1alpha1.StateReserved, v1alpha1.UnclaimableFaulty},
		{v1alpha1.StateAvailable, "jane: the fan rattles"}, {v1alpha1.StateReleased, "jane: the fan rattles"}} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(redfish.PowerOff)
			m.shines, m.shows.LED = true, redfish.LEDOff
			w := inWorld(t, m, serverIn(c.state))
			edit(w, "a", &v1alpha1.Server{}, func(s *v1alpha1.Server) {
				s.Spec.Unclaimable = true
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.UnclaimableReasonAnnotation, c.reason)
			})
			w.manager.run(10 * time.Minute)
			if m.shows.LED != redfish.LEDOff || slices.Contains(w.server().Status.Lifecycle.Marks, "Located") {
				t.Errorf("%s: the light is %s, marks %v", c.state, m.shows.LED, w.server().Status.Lifecycle.Marks)
			}
		})
	}
}

func TestALightThatCannotBeSwitchedOffIsTriedAgainAndStaysMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.shines, m.shows.LED = true, redfish.LEDOff
		w := inWorld(t, m, serverIn(v1alpha1.StateError))
		w.manager.run(10 * time.Second)
		m.refuses = func(string) error { return &redfish.ResponseError{Method: "PATCH", Status: 400} }
		w.leavesError()
		w.manager.run(power.SettingRetry + power.SettingRetry/2)
		m.wants(t, "in the end", "SetLED Blinking", "SetLED Off", "SetLED Off")
		if !slices.Contains(w.server().Status.Lifecycle.Marks, "Located") {
			t.Error("the mark is lost")
		}
	})
}

func TestALightThatDoesNotShowYetIsStillOursToSwitchOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.shines, m.shows.LED = true, redfish.LEDOff
		w := inWorld(t, m, serverIn(v1alpha1.StateError))
		m.hears = func(asked string) {
			if asked == "SetLED Blinking" { // the state is left while the BMC still works on the light
				m.hears = nil
				w.leavesError()
			}
		}
		w.manager.run(10 * time.Minute)
		m.wants(t, "in the end", "SetLED Blinking", "SetLED Off")
		if m.shows.LED != redfish.LEDOff {
			t.Errorf("the light is %s", m.shows.LED)
		}
		if slices.Contains(w.server().Status.Lifecycle.Marks, "Located") {
			t.Error("the mark is kept")
		}
	})
}
