// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/plan"
	"github.com/metalaw/metalaw/redfish"
)

func TestHowOftenABMCIsReadWithinAMinute(t *testing.T) {
	for name, c := range map[string]struct {
		power   redfish.PowerState
		objects func() []client.Object
		most    int
		least   int
	}{
		"of a server that rests, once": {
			power: redfish.PowerOff, objects: func() []client.Object { return reserved(v1alpha1.PowerOff) }, least: 1, most: 1},
		"of one that waits for the boot service, every 15 seconds": {
			power: redfish.PowerOff, objects: unprepared, least: 3, most: 6},
		"of one whose operating system shuts down, ever more seldom": {
			power: redfish.PowerOn, objects: func() []client.Object { return reserved(v1alpha1.PowerOff) }, least: 8, most: 15},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.power)
				m.obeys = deaf
				w := inWorld(t, m, c.objects()...)
				w.manager.run(time.Minute)
				if m.readings() < c.least || m.readings() > c.most {
					t.Errorf("read %d times, want %d to %d", m.readings(), c.least, c.most)
				}
			})
		})
	}
}

// unprepared is a server whose claim asks for power, and whose boot configuration nobody has prepared yet.
func unprepared() []client.Object {
	objects := reserved(v1alpha1.PowerOn, func(s *v1alpha1.Server) { s.Status.Lifecycle.EnteredAt = metav1.NowMicro() })
	objects[2].(*v1alpha1.ServerBootConfiguration).Status.State = ""
	return objects
}

func TestHowOftenABMCIsReadForOnePowerChange(t *testing.T) {
	for name, c := range map[string]struct {
		shows   redfish.PowerState
		objects func() []client.Object
		asked   string
		reads   int
	}{
		"a power-on, before it and after it":   {redfish.PowerOff, func() []client.Object { return reserved(v1alpha1.PowerOn) }, "On", 2},
		"a power-off, before it and after it":  {redfish.PowerOn, available, "ForceOff", 2},
		"one of a machine that is not seen on": {redfish.PowerOff, available, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.shows)
				m.obeys = slowly(50 * time.Millisecond)
				w := inWorld(t, m, c.objects()...)
				w.manager.run(10 * time.Second)
				if c.asked == "" {
					m.wants(t, "in ten seconds")
				} else {
					m.wants(t, "in ten seconds", c.asked)
				}
				if m.readings() != c.reads {
					t.Errorf("read %d times, want %d", m.readings(), c.reads)
				}
			})
		})
	}
}

func TestAReadingThatEndsWhileAServerIsDecidedOnIsNotMadeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		shows   redfish.PowerState
		objects func() []client.Object
		asked   string
	}{
		"before a power-on":  {redfish.PowerOff, func() []client.Object { return reserved(v1alpha1.PowerOn) }, "On"},
		"before a power-off": {redfish.PowerOn, available, "ForceOff"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.shows)
				w := inWorld(t, m, c.objects()...)
				w.manager.between = func() { time.Sleep(2 * readTakes) }
				w.manager.run(10 * time.Second)
				m.wants(t, "in ten seconds", c.asked)
				if m.readings() != 2 {
					t.Errorf("read %d times, want 2: before it and after it", m.readings())
				}
				for _, age := range w.manager.relied {
					if age > plan.Freshness {
						t.Errorf("the BMC is asked on what it said %s before", age)
					}
				}
			})
		})
	}
}

func available() []client.Object { return []client.Object{serverIn(v1alpha1.StateAvailable)} }

func TestTheFirstReadingOfAServerServesUntilItsProbeBoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		w := inWorld(t, m, serverIn("", func(s *v1alpha1.Server) { s.Status.Lifecycle, s.Finalizers = nil, nil }))
		w.manager.run(time.Second)
		if got := w.server().Status.State; got != v1alpha1.StateDiscovery || m.readings() != 1 {
			t.Errorf("the server is %s after %d reads, want Discovery after 1", got, m.readings())
		}
		boot := &v1alpha1.ServerBootConfiguration{}
		if err := w.api.Get(t.Context(), types.NamespacedName{Namespace: "metalaw-system", Name: "a"}, boot); err != nil {
			t.Fatal(err)
		}
		boot.Status.State = v1alpha1.ServerBootConfigurationStateReady
		if err := w.api.Status().Update(t.Context(), boot); err != nil {
			t.Fatal(err)
		}
		w.manager.wake("a")
		w.manager.run(5 * time.Second)
		m.wants(t, "once the boot is prepared", "On")
		if m.readings() != 2 {
			t.Errorf("read %d times, want 2: at first, and for what became of the power-on", m.readings())
		}
		for _, age := range w.manager.relied {
			if age > plan.Freshness {
				t.Errorf("the BMC is asked on what it said %s before", age)
			}
		}
	})
}
