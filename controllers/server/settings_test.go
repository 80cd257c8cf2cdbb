// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/redfish"
)

// diskFirst is a server that is to boot from its disk, then from the network.
func diskFirst(s *v1alpha1.Server) {
	s.Spec.BootOrder = []v1alpha1.BootOrder{{Name: "net", Priority: 2, Device: "Net"}, {Name: "disk", Priority: 1, Device: "Disk"}}
}

func TestABootOrderIsSetOnceAndOnlyWhileTheMachineIsOff(t *testing.T) {
	for name, c := range map[string]struct {
		power redfish.PowerState
		claim v1alpha1.Power
		shown []string
		asked []string
	}{
		"off":                                {redfish.PowerOff, v1alpha1.PowerOff, nil, []string{"SetBootOrder Disk,Net"}},
		"off, and ordered so already":        {redfish.PowerOff, v1alpha1.PowerOff, []string{"Disk", "Net", "USB"}, nil},
		"off, and about to be on":            {redfish.PowerOff, v1alpha1.PowerOn, nil, []string{"SetBootOrder Disk,Net", "On"}},
		"on":                                 {redfish.PowerOn, v1alpha1.PowerOn, nil, nil},
		"on, and about to be off":            {redfish.PowerOn, v1alpha1.PowerOff, nil, []string{"GracefulShutdown", "SetBootOrder Disk,Net"}},
		"neither on nor off, as far it says": {redfish.PowerUnknown, v1alpha1.PowerOff, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.power)
				m.shows.BootOrder = c.shown
				w := inWorld(t, m, reserved(c.claim, diskFirst)...)
				w.manager.run(9 * time.Minute)
				m.wants(t, "in the end", c.asked...)
			})
		})
	}
}

func TestABootOrderThatFailsIsSetAgainAndHoldsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.refuses = func(asked string) error {
			if asked == "SetBootOrder Disk,Net" {
				return &redfish.ResponseError{Method: "PATCH", Status: 400}
			}
			return nil
		}
		w := inWorld(t, m, reserved(v1alpha1.PowerOff, diskFirst)...)
		w.manager.run(4*power.SettingRetry + time.Minute)
		gaps := m.gaps("SetBootOrder Disk,Net")
		if len(gaps) < 3 {
			t.Fatalf("set %d times", len(gaps)+1)
		}
		for _, gap := range gaps {
			if gap < power.SettingRetry || gap > power.SettingRetry+power.SettingRetry/8 {
				t.Errorf("set again after %s, want %s and no more than the queue's jitter", gap, power.SettingRetry)
			}
		}
		if !slices.Contains(w.events, "BootOrderFailed") {
			t.Errorf("events %v", w.events)
		}
		before := len(m.asked())
		w.claims(v1alpha1.PowerOn)
		w.manager.run(5 * time.Second)
		if got := m.asked()[before:]; !slices.Contains(got, "On") {
			t.Errorf("it holds the power-on back; the BMC was asked for %v", got)
		}
	})
}

func TestABootOrderIsLeftAloneWhileAPowerOnMayStillComeTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.obeys = slowly(40 * time.Second) // the BMC shows Off long after the machine began to boot
		w := inWorld(t, m, reserved(v1alpha1.PowerOn)...)
		w.manager.run(5 * time.Second)
		edit(w, "a", &v1alpha1.Server{}, diskFirst)
		w.manager.run(5 * time.Minute)
		m.wants(t, "in the end", "On")
	})
}

func TestABootOrderIsNotSetOnAWordOfLongAgo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := inWorld(t, m, serverIn(v1alpha1.StateAvailable))
		w.manager.run(time.Minute)
		m.will(0, redfish.PowerOn) // somebody switches it on by hand
		m.obeys = deaf
		edit(w, "a", &v1alpha1.Server{}, diskFirst)
		w.manager.run(30 * time.Second)
		if slices.Contains(m.asked(), "SetBootOrder Disk,Net") {
			t.Errorf("the BMC was asked for %v", m.asked())
		}
	})
}

func TestALightThatWasNotEvenAskedForIsAskedForAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.shows.LED = redfish.LEDOff
		refusals := 0
		m.refuses = func(string) error {
			if refusals++; refusals == 1 {
				return &redfish.NotAskedError{What: "the light", Err: errors.New("the holder changed meanwhile")}
			}
			return nil
		}
		w := inWorld(t, m, reserved(v1alpha1.PowerOff, func(s *v1alpha1.Server) { s.Spec.IndicatorLED = v1alpha1.IndicatorLEDBlinking })...)
		w.manager.run(10 * time.Second)
		m.wants(t, "within ten seconds", "SetLED Blinking", "SetLED Blinking")
	})
}
