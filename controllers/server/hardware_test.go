// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

func TestAServerUnderABundleThatWantsNoneLosesTheLabelsOfItsHardware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.shows.Identity.Manufacturer = "Maker & Sons"
		w := inWorld(t, m, serverIn(v1alpha1.StateAvailable, func(s *v1alpha1.Server) { s.Labels = map[string]string{"rack": "r1"} }))
		w.manager.run(10 * time.Minute)
		shown := map[string]string{"rack": "r1", "inventory.metalaw.dev/manufacturer": "Maker_Sons"}
		if diff := cmp.Diff(shown, w.server().Labels); diff != "" {
			t.Errorf("by default (-want +got)\n%s", diff)
		}
		without := *w.manager.Bundles.Active()
		without.Settings.NoInventoryLabels = true
		w.manager.Bundles = governed{&without}
		w.manager.wake("a")
		w.manager.run(10 * time.Minute)
		if diff := cmp.Diff(map[string]string{"rack": "r1"}, w.server().Labels); diff != "" {
			t.Errorf("while it is off (-want +got)\n%s", diff)
		}
		if got := w.server().Status.Manufacturer; got != "Maker & Sons" {
			t.Errorf("the fact itself is %q", got)
		}
	})
}

func TestAServerThatRestsShowsItsHardwareInLabelsAndItsHealth(t *testing.T) {
	for name, c := range map[string]struct {
		health redfish.Health
		parts  []redfish.HealthPart
		want   string
	}{
		"in good health":                {redfish.HealthOK, nil, "True/HealthOK"},
		"with a part that has failed":   {redfish.HealthCritical, []redfish.HealthPart{{Name: "Memory", Hardware: true}}, "False/HealthCritical"},
		"whose lid is open":             {redfish.HealthCritical, []redfish.HealthPart{{Name: "Intrusion"}}, "False/HealthTolerated"},
		"whose BMC names no part":       {redfish.HealthCritical, nil, "False/HealthCritical"},
		"whose BMC says nothing of any": {redfish.HealthUnknown, nil, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				m.shows.Health, m.shows.Critical = c.health, c.parts
				m.shows.Identity.Manufacturer = "Maker & Sons"
				inventory := &policyv1alpha1.ServerInventory{Report: &policyv1alpha1.ProbeReport{Data: policyv1alpha1.ProbeData{
					CPU: []policyv1alpha1.CPU{{TotalCores: 16}}, Memory: []policyv1alpha1.MemoryDevice{{SizeBytes: 64 << 30}}}}}
				inventory.Name, inventory.Spec.SystemUUID = machineUUID, machineUUID
				w := inWorld(t, m, serverIn(v1alpha1.StateAvailable, func(s *v1alpha1.Server) {
					s.Labels = map[string]string{"rack": "r1", "inventory.metalaw.dev/gpus": "8"}
				}), inventory)
				w.manager.run(10 * time.Minute)
				s := w.server()
				if diff := cmp.Diff(map[string]string{"rack": "r1", "inventory.metalaw.dev/manufacturer": "Maker_Sons",
					"inventory.metalaw.dev/cpus": "1", "inventory.metalaw.dev/cores": "16", "inventory.metalaw.dev/memory-gib": "64"}, s.Labels); diff != "" {
					t.Errorf("labels (-want +got)\n%s", diff)
				}
				got := "none"
				if healthy := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionHealthy); healthy != nil {
					got = string(healthy.Status) + "/" + healthy.Reason
				}
				if got != c.want {
					t.Errorf("Healthy is %s, want %s", got, c.want)
				}
				if broken := len(s.Status.FaultyParts) > 0; broken != (c.want == "False/HealthCritical") {
					t.Errorf("broken parts are %+v", s.Status.FaultyParts)
				}
			})
		})
	}
}
