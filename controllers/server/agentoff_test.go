// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

// A rack that is inspected for the first time runs the probe on each machine: no budget of forced power-offs holds that back.
func TestAMachineThatRunsTheProbeIsPoweredOffPastTheBudget(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.Server)
		want   []string
	}{
		"which has just reported": {func(*v1alpha1.Server) {}, []string{"ForceOff"}},
		"but not one that a user had restarted since": {func(s *v1alpha1.Server) {
			at := metav1.NewMicroTime(time.Now().Add(-time.Second))
			s.Status.Operation = &v1alpha1.OperationStatus{Name: v1alpha1.OperationPowerCycleServer, State: v1alpha1.OperationSucceeded, BegunAt: &at}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reported := func(s *v1alpha1.Server) {
					at, on := metav1.NewMicroTime(time.Now()), metav1.NewMicroTime(time.Now().Add(-time.Minute))
					s.Status.Lifecycle.EnteredAt, s.Status.Lifecycle.EnteredCounted = at, metav1.Duration{Duration: 499 * time.Second}
					s.Status.Lifecycle.Request = &v1alpha1.PowerRequest{Action: v1alpha1.PowerActionOn, Entry: 6, Attempts: 1, AskedAt: on, ShownAt: &on}
					s.Status.Lifecycle.History = []v1alpha1.LifecycleMove{{From: "Discovery", To: "Available", Rule: "ProbeReported", Entry: 7, At: at}}
				}
				control := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
				control.Spec.Budgets = []policyv1alpha1.Budget{{Name: "forced-power-offs", Action: policyv1alpha1.ActionForcedOff, Max: ptr.To[int32](0)}}
				inventory := inventoryOfA()
				inventory.Report = &policyv1alpha1.ProbeReport{Entry: 6}
				m := newMachine(redfish.PowerOn)
				w := inWorld(t, m, serverIn(v1alpha1.StateAvailable, reported, c.change), inventory, control)
				w.manager.Counted = counts(500)
				w.manager.run(time.Minute)
				m.wants(t, "after the inspection", c.want...)
				begun := w.server().Status.Lifecycle.Begun
				if len(begun) != 0 {
					t.Errorf("budgets count %+v", begun)
				}
			})
		})
	}
}
