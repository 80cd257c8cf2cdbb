// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/redfish"
)

func enteredAhead(s *v1alpha1.Server) {
	s.Status.Lifecycle.EnteredAt = metav1.NewMicroTime(time.Now().Add(time.Hour))
}

func TestAnEntryThatAClockAheadRecordedChangesNothingAboutItsRequests(t *testing.T) {
	for name, c := range map[string]struct {
		power  redfish.PowerState
		wanted v1alpha1.Power
		within time.Duration
		asked  []string
	}{
		"the power is cut once the operating system had its time": {redfish.PowerOn, v1alpha1.PowerOff,
			plan.ShutdownGrace + testPowerGrace, []string{"GracefulShutdown", "ForceOff"}},
		"pauses between power-ons grow": {redfish.PowerOff, v1alpha1.PowerOn,
			3*testPowerGrace - time.Second, []string{"On", "On"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.power)
				m.obeys = deaf
				w := inWorld(t, m, reserved(c.wanted, enteredAhead)...)
				w.manager.run(c.within)
				m.wants(t, "meanwhile", c.asked...)
			})
		})
	}
}

func TestAnOverrideIsClearedThoughAClockAheadRecordedTheEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		m.shows.Boot = redfish.BootOverride{Enabled: "Once", Target: "Pxe"}
		w := inWorld(t, m, reserved(v1alpha1.PowerOn, enteredAhead)...)
		w.manager.run(testBootGrace + time.Minute)
		if !slices.Contains(m.asked(), "ClearBoot") {
			t.Errorf("asked %v: what stays set hijacks the next reboot", m.asked())
		}
	})
}
