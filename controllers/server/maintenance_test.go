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

// inService is a server that names the maintenance ops/disks.
func inService(s *v1alpha1.Server) {
	s.Spec.ServerMaintenanceRef = &v1alpha1.ObjectReference{Namespace: "ops", Name: "disks"}
}

// maintenance is ops/disks, for the server a.
func maintenance(change ...func(*v1alpha1.ServerMaintenance)) *v1alpha1.ServerMaintenance {
	m := &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "disks", UID: "uid-disks"}}
	m.Spec.ServerRef.Name = "a"
	for _, c := range change {
		c(m)
	}
	return m
}

func TestAMaintenanceLastsUntilTheServerNamesNone(t *testing.T) {
	keeping := func(m *v1alpha1.ServerMaintenance) { m.Finalizers = []string{v1alpha1.FinalizerServerMaintenance} }
	deleted := func(w *world) {
		if err := w.api.Delete(w.t.Context(), maintenance()); err != nil {
			w.t.Fatal(err)
		}
		w.manager.wake("a")
	}
	for name, c := range map[string]struct {
		maintenance *v1alpha1.ServerMaintenance
		happens     func(*world)
	}{
		"whether or not the one that it names next is found": {maintenance(), serverBecomes(func(s *v1alpha1.Server) { s.Spec.ServerMaintenanceRef.Name = "fans" })},
		"though it is being deleted":                         {maintenance(keeping), deleted},
		"though it is gone":                                  {maintenance(), deleted},
		"though it is for another server":                    {maintenance(func(m *v1alpha1.ServerMaintenance) { m.Spec.ServerRef.Name = "b" }), func(*world) {}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOn)
				w := inWorld(t, m, serverIn(v1alpha1.StateMaintenance, inService), c.maintenance)
				w.manager.run(time.Minute)
				c.happens(w)
				w.manager.run(2 * time.Hour)
				if got := w.server().Status.State; got != v1alpha1.StateMaintenance {
					t.Errorf("it is in state %q", got)
				}
				m.wants(t, "while it is in maintenance")
				serverBecomes(func(s *v1alpha1.Server) { s.Spec.ServerMaintenanceRef = nil })(w)
				w.manager.run(10 * time.Second)
				if got := w.server().Status.State; got == v1alpha1.StateMaintenance {
					t.Error("it stays once it names none")
				}
			})
		})
	}
}

func TestAServerThatNamesAMaintenanceIsLeftAlone(t *testing.T) {
	unmarked := func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = nil }
	lost := func(s *v1alpha1.Server) { s.Status.State, s.Status.Lifecycle = "", nil }
	parked := func(s *v1alpha1.Server) { s.Annotations[v1alpha1.ParkedAnnotation] = "true" }
	for name, c := range map[string]struct {
		state  v1alpha1.ServerState
		change []func(*v1alpha1.Server)
		power  redfish.PowerState
		want   v1alpha1.ServerState
	}{
		"Initial, running and ours":         {v1alpha1.StateInitial, nil, redfish.PowerOn, "Maintenance"},
		"Initial, off":                      {v1alpha1.StateInitial, []func(*v1alpha1.Server){unmarked}, redfish.PowerOff, "Maintenance"},
		"Discovery, its agent running":      {v1alpha1.StateDiscovery, nil, redfish.PowerOn, "Maintenance"},
		"Discovery, before its agent boots": {v1alpha1.StateDiscovery, []func(*v1alpha1.Server){unmarked}, redfish.PowerOff, "Maintenance"},
		"Available, off":                    {v1alpha1.StateAvailable, nil, redfish.PowerOff, "Maintenance"},
		"without a status, off":             {"", []func(*v1alpha1.Server){lost}, redfish.PowerOff, "Maintenance"},
		"without a status, parked":          {"", []func(*v1alpha1.Server){lost, parked}, redfish.PowerOff, "Parked"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.power)
				w := inWorld(t, m, serverIn(c.state, append(c.change, inService)...))
				w.manager.run(2 * time.Hour)
				s := w.server()
				if got := s.Status.State; got != c.want {
					t.Errorf("it is in state %q", got)
				}
				if _, parked := s.Annotations[v1alpha1.ParkedAnnotation]; parked != (c.want == v1alpha1.StateParked) {
					t.Errorf("it is marked as parked: %t", parked)
				}
				m.wants(t, "in the end")
			})
		})
	}
}
