// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

func TestAnOperationIsOneReset(t *testing.T) {
	blinks := func(s *v1alpha1.Server) { s.Spec.IndicatorLED = v1alpha1.IndicatorLED("Blinking") }
	dark := func(m *machine) { m.shows.LED = redfish.LEDOff }
	for name, c := range map[string]struct {
		operation string
		server    func(*v1alpha1.Server)
		machine   func(*machine)
		asked     []string
	}{
		"a hard restart":     {"hard-restart-server", nil, nil, []string{"ForceRestart"}},
		"a graceful restart": {"graceful-restart-server", nil, nil, []string{"GracefulRestart"}},
		"a power cycle":      {"power-cycle-server", nil, nil, []string{"PowerCycle"}},
		"beside a locator light that never shows as asked": {"hard-restart-server", blinks, dark, []string{"ForceRestart", "SetLED Blinking"}},
		"for a machine that does not do what it accepted":  {"hard-restart-server", nil, func(m *machine) { m.obeys = deaf }, []string{"ForceRestart"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				server := func(s *v1alpha1.Server) {
					operates(c.operation)(s)
					if c.server != nil {
						c.server(s)
					}
				}
				if c.machine != nil {
					c.machine(m)
				}
				w := inWorld(t, m, reserved(v1alpha1.PowerOn, server)...)
				var recorded []string
				m.hears = func(string) { recorded = append(recorded, w.operation()) }
				w.manager.run(10 * time.Minute)
				m.wants(t, "in the end", c.asked...)
				if got := w.operation(); got != c.operation+" Succeeded" {
					t.Errorf("it ended as %s", got)
				}
				if first := c.operation + " InProgress"; len(recorded) == 0 || recorded[0] != first {
					t.Errorf("when the BMC heard of it the record was %v, want first %s", recorded, first)
				}
			})
		})
	}
}

// A reset is meant for the machine as it stands when it is asked for: not for the holder that comes next.
func TestAResetThatCouldNotBeDoneDoesNotFollowTheServerToItsNextHolder(t *testing.T) {
	idle := variant(t, "2.0.0", "operations: [park]", "operations: [park, hard-restart-server]")
	for name, asked := range map[string]string{
		"while the request stands":       "hard-restart-server Pending, and asked for",
		"once the request is taken away": "hard-restart-server Pending",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				objects := reserved(v1alpha1.PowerOn)
				objects[0] = serverIn(v1alpha1.StateAvailable, pinnedTo(idle))
				w := inWorld(t, m, objects...)
				w.manager.Bundles = governed{idle}
				w.manager.run(time.Second) // what the BMC said is fresh, so that the claim moves the server at once
				edit(w, "a", &v1alpha1.Server{}, operates("hard-restart-server"))
				got := ""
				for range 100 {
					if _, err := w.manager.look(); err != nil {
						t.Fatal(err)
					}
					got = w.operation()
					if w.server().Annotations[v1alpha1.OperationAnnotation] != "" {
						got += ", and asked for"
					}
					if got == asked {
						break
					}
				}
				if got != asked {
					t.Fatal(got)
				}
				edit(w, "a", &v1alpha1.Server{}, func(s *v1alpha1.Server) {
					if s.Annotations == nil {
						s.Annotations = map[string]string{}
					}
					holdsWeb(s)
					s.Spec.BootConfigurationRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
				})
				w.manager.run(30 * time.Minute)
				m.wants(t, "in the end", "On", "ClearBoot")
				if got := w.operation(); got != "hard-restart-server Failed" || w.server().Status.State != v1alpha1.StateReserved {
					t.Error(got, w.server().Status.State)
				}
			})
		})
	}
}

// One that a freeze stopped at the last moment is begun again only where it was asked for.
func TestAResetOfAFormerEntryIsNotBegun(t *testing.T) {
	for name, c := range map[string]struct {
		entry int64
		asked []string
		want  string
	}{
		"of this entry":       {7, []string{"ForceRestart"}, "hard-restart-server Succeeded"},
		"of the entry before": {6, nil, "hard-restart-server Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				w := inWorld(t, m, reserved(v1alpha1.PowerOn, func(s *v1alpha1.Server) {
					if s.Status.Lifecycle.Entry != 7 {
						t.Fatalf("it is in entry %d", s.Status.Lifecycle.Entry)
					}
					s.Status.Operation = &v1alpha1.OperationStatus{ID: "1", Name: "hard-restart-server", State: v1alpha1.OperationPending, Entry: c.entry}
				})...)
				w.manager.run(10 * time.Minute)
				m.wants(t, "in the end", c.asked...)
				if got := w.operation(); got != c.want {
					t.Error(got)
				}
			})
		})
	}
}

func TestAnOperationWhoseBeginningCouldNotBeStoredIsOneReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		w := inWorld(t, m, reserved(v1alpha1.PowerOn, operates("hard-restart-server"))...)
		refused := 0
		w.refuses = func(s *v1alpha1.Server) error {
			if op := s.Status.Operation; op != nil && op.State == v1alpha1.OperationInProgress && refused == 0 {
				refused++
				return errConflict
			}
			return nil
		}
		m.hears = func(string) {
			if got := w.operation(); got != "hard-restart-server InProgress" {
				t.Errorf("when the BMC heard of it the record was %s", got)
			}
		}
		w.manager.run(10 * time.Minute)
		m.wants(t, "in the end", "ForceRestart")
		if got := w.operation(); refused != 1 || got != "hard-restart-server Succeeded" {
			t.Errorf("refused %d times, ended as %s", refused, got)
		}
	})
}

func TestAnOperationWhoseEndCouldNotBeStoredIsOneReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		w := inWorld(t, m, reserved(v1alpha1.PowerOn, operates("hard-restart-server"))...)
		refused := 0
		w.refuses = func(s *v1alpha1.Server) error {
			if op := s.Status.Operation; op != nil && op.FinishedAt != nil && refused < 3 {
				refused++
				return errDown
			}
			return nil
		}
		w.manager.run(10 * time.Minute)
		m.wants(t, "in the end", "ForceRestart")
		if got := w.operation(); refused != 3 || got != "hard-restart-server Succeeded" {
			t.Errorf("refused %d times, ended as %s", refused, got)
		}
	})
}

func TestAnOperationThatAFormerManagerBeganIsNotRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		dies  bool
		asked []string
	}{
		"it died before the BMC was asked": {true, nil},
		"it died after the BMC was asked":  {false, []string{"ForceRestart"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				w := inWorld(t, m, reserved(v1alpha1.PowerOn, operates("hard-restart-server"))...)
				w.manager.dies = c.dies
				if !c.dies {
					w.refuses = func(s *v1alpha1.Server) error {
						if op := s.Status.Operation; op != nil && op.FinishedAt != nil {
							return errDown
						}
						return nil
					}
				}
				w.manager.run(2 * time.Second)
				if got := w.operation(); got != "hard-restart-server InProgress" {
					t.Fatalf("when the manager died the record was %s", got)
				}
				w.refuses = nil
				w.start().run(10 * time.Minute)
				m.wants(t, "in the end", c.asked...)
				if got := w.operation(); got != "hard-restart-server Failed" {
					t.Errorf("it ended as %s", got)
				}
			})
		})
	}
}

func TestAResetThatTheBMCRefusesEndsTheOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOn)
		m.refuses = func(string) error { return &redfish.ResponseError{Method: "POST", Status: 400} }
		w := inWorld(t, m, reserved(v1alpha1.PowerOn, operates("hard-restart-server"))...)
		w.manager.run(10 * time.Minute)
		m.wants(t, "in the end", "ForceRestart")
		if got := w.operation(); got != "hard-restart-server Failed" {
			t.Errorf("it ended as %s", got)
		}
	})
}
