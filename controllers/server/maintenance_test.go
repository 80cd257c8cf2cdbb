// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
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

var moment = regexp.MustCompile(`since 2000-01-01T00:0\d:\d\dZ,`)

func TestAMaintenanceThatWaitsSaysForWhat(t *testing.T) {
	const (
		waits  = "maintenance ops/disks has not begun: "
		silent = "; the BMC has not answered since THEN, so the manager does not know whether the machine is on"
	)
	for name, c := range map[string]struct {
		state  v1alpha1.ServerState
		change func(*v1alpha1.Server)
		wiping bool
		power  redfish.PowerState
		// silent says that its BMC falls silent before the maintenance is asked for.
		silent bool
		// waits and ready are the conditions MaintenanceWaits and Ready.
		waits, ready string
	}{
		"for a BMC that does not answer": {state: v1alpha1.StateAvailable, power: redfish.PowerOff, silent: true,
			waits: "BMCUnreachable: " + waits + "SetAside waits for a fresh reading of the BMC" + silent,
			ready: "BMCUnreachable: Its BMC cannot be used (ConnectionFailed). SetAside waits for a fresh reading of the BMC"},
		"for a BMC that does not say whether a wipe comes up": {state: v1alpha1.StateCleanup, change: toWipe, power: redfish.PowerOff, silent: true,
			waits: "BMCUnreachable: " + waits + "rule SetAside waits for inService && !wiping && !wipeBooted (inService is true, wipeBooted is true, wiping is false)" + silent,
			ready: "BMCUnreachable: Its BMC cannot be used (ConnectionFailed). Booting the wipe image; its disks are being erased and checked. Waits in BootWipe: the BMC, which does not answer: redfish: GET  at : no route to host"},
		"for a wipe that runs": {state: v1alpha1.StateCleanup, change: toWipe, power: redfish.PowerOn, wiping: true,
			waits: "RuleWaits: " + waits + "rule SetAside waits for inService && !wiping && !wipeBooted (inService is true, wiping is true)",
			ready: "Moving: Booting the wipe image; its disks are being erased and checked."},
		"for somebody to unpark it": {state: v1alpha1.StateParked, power: redfish.PowerOff,
			waits: "NoRule: " + waits + "no rule of the policy leads there from state Parked",
			ready: "Stable: Off and handed to somebody outside; nothing is touched."},
		"not where it has begun": {state: v1alpha1.StateAvailable, power: redfish.PowerOff,
			ready: "Stable: Handed to the maintenance that it names, until that reference is cleared; only what it asks for is done."},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(c.power)
				change := c.change
				if change == nil {
					change = func(*v1alpha1.Server) {}
				}
				objects := []client.Object{serverIn(c.state, change)}
				if c.wiping {
					objects = append(objects, wiping(policyv1alpha1.WipeRunning, 7))
				}
				w := inWorld(t, m, objects...)
				w.manager.run(time.Minute)
				if c.silent {
					m.silent = &redfish.UnreachableError{Method: "GET", Err: errors.New("no route to host")}
					w.manager.run(10 * time.Minute)
				}
				serverBecomes(inService)(w)
				w.manager.run(time.Minute)
				said := func(kind string) string {
					if c := meta.FindStatusCondition(w.server().Status.Conditions, kind); c != nil {
						return c.Reason + ": " + moment.ReplaceAllString(c.Message, "since THEN,")
					}
					return ""
				}
				if diff := cmp.Diff(c.waits, said(v1alpha1.ConditionMaintenanceWaits)); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(c.ready, said(v1alpha1.ConditionReady)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
