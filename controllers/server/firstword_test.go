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

func entersNow(s *v1alpha1.Server) { s.Status.Lifecycle.EnteredAt = metav1.NowMicro() }

func TestAServerFindsItsPlaceOnlyOnceItsMachineWasSeen(t *testing.T) {
	formerly := func(s *v1alpha1.Server) { s.Annotations[v1alpha1.ClaimUIDAnnotation] = "uid-web" }
	for name, c := range map[string]struct {
		change []func(*v1alpha1.Server)
		power  redfish.PowerState
		// silent is how long the BMC does not answer.
		silent  time.Duration
		waiting v1alpha1.ServerState
		then    v1alpha1.ServerState
	}{
		"with unreleased data, that runs and is not ours":                  {[]func(*v1alpha1.Server){marked("Dirty")}, redfish.PowerOn, 0, "Initial", "Observing"},
		"with unreleased data, that runs and whose BMC answers later":      {[]func(*v1alpha1.Server){marked("Dirty")}, redfish.PowerOn, time.Hour, "Initial", "Observing"},
		"with unreleased data, that is off":                                {[]func(*v1alpha1.Server){marked("Dirty")}, redfish.PowerOff, 0, "Initial", "Error"},
		"with unreleased data, that is ours and whose BMC answers later":   {[]func(*v1alpha1.Server){marked("Dirty", "Managed")}, redfish.PowerOn, time.Hour, "Initial", "Error"},
		"with data that was released, that runs and is not ours":           {[]func(*v1alpha1.Server){marked("Dirty"), formerly, released}, redfish.PowerOn, 0, "Initial", "Observing"},
		"with data that was released, not ours, whose BMC answers later":   {[]func(*v1alpha1.Server){marked("Dirty"), formerly, released}, redfish.PowerOn, time.Hour, "Initial", "Observing"},
		"with data that was released, that is ours, straight to the wipe":  {[]func(*v1alpha1.Server){marked("Dirty", "Managed"), formerly, released}, redfish.PowerOff, 0, "Initial", "Cleanup"},
		"held by a claim, whose machine nobody may stop, once it was seen": {[]func(*v1alpha1.Server){marked("Dirty"), holdsWeb}, redfish.PowerOn, 0, "Initial", "Reserved"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.power)
				if c.silent > 0 {
					m.silent = errDown
				}
				w := inWorld(t, m, serverIn(v1alpha1.StateInitial, append(c.change, entersNow)...), inventoryOfA())
				if _, err := w.manager.look(); err != nil {
					t.Fatal(err)
				}
				if got := w.server().Status.State; got != v1alpha1.StateInitial {
					t.Errorf("before anything was read it is %s", got)
				}
				w.manager.run(c.silent)
				if got := w.server().Status.State; c.silent > 0 && got != c.waiting {
					t.Errorf("while its BMC is silent it is %s, want %s", got, c.waiting)
				}
				m.mu.Lock()
				m.silent = nil
				m.mu.Unlock()
				w.manager.run(5 * time.Minute)
				for _, move := range w.server().Status.Lifecycle.History {
					if move.To != c.then {
						t.Errorf("it went to %s by %s, want %s", move.To, move.Rule, c.then)
					}
				}
				if got := w.server().Status.State; got != c.then {
					t.Errorf("then it is %s, want %s", got, c.then)
				}
			})
		})
	}
}
