// SPDX-License-Identifier: Apache-2.0

package server

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

func TestEachStepOfSwitchingOffAMachineThatAPersonSwitchedOnLeavesAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := inWorld(t, m, serverIn(v1alpha1.StateAvailable, func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = []string{"Managed"} }))
		w.manager.run(5 * time.Minute)
		if len(w.events) > 0 {
			t.Fatalf("at rest it tells %v", w.events)
		}
		m.will(0, redfish.PowerOn)
		w.manager.run(10 * time.Minute)
		want := []string{"SwitchedOnByHand", "ForcedOff", "SwitchedOff"}
		if got := w.events; !slices.Equal(got, want) {
			t.Errorf("it tells %v, want %v: %v", got, want, w.said)
		}
	})
}
