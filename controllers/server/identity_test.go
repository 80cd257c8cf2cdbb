// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/rivals"
	"github.com/metalaw/metalaw/controllers/server/identity"
	"github.com/metalaw/metalaw/redfish"
)

// reading has the manager store what BMCs show of their machines, and know that.
func (w *world) reading(known *rivals.Memory) {
	w.t.Helper()
	w.manager.Identities, w.manager.Rivals = identity.NewCache(clientsOf{w.machine}, w.manager.wake), known
	w.t.Cleanup(w.manager.Identities.Close)
}

func (w *world) prepared() int {
	w.t.Helper()
	var all v1alpha1.ServerBootConfigurationList
	if err := w.api.List(w.t.Context(), &all); err != nil {
		w.t.Fatal(err)
	}
	return len(all.Items)
}

func entered(s *v1alpha1.Server) {
	s.Status.Lifecycle.EnteredAt, s.Status.Lifecycle.Marks = metav1.NewMicroTime(time.Now()), nil
}

func TestWhatTheBMCShowsIsStoredBeforeAnAgentIsBooted(t *testing.T) {
	for name, serial := range map[string]string{"a serial number": "A1B2C3", "nothing": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(redfish.PowerOff)
				m.shows.Identity.SerialNumber = serial
				w := inWorld(t, m, serverIn(v1alpha1.StateDiscovery, entered, func(s *v1alpha1.Server) { s.Status.SerialNumber = "FORGED" }))
				w.reading(nil)
				w.manager.run(30 * time.Second)
				id := w.inventory().Identity
				if id == nil || id.BMC == nil || strings.Join(id.BMC.Serials, " ") != serial || id.BMC.ReadAt.IsZero() {
					t.Errorf("stored %+v", id)
				}
				if w.prepared() != 1 {
					t.Errorf("%d boots are prepared", w.prepared())
				}
			})
		})
	}
}

func TestNoAgentIsBootedWhileAnotherBMCShowsTheUUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(redfish.PowerOff)
		m.shows.Identity.SerialNumber = "A1B2C3"
		behind := func(s *v1alpha1.Server) {
			s.Spec.BMC, s.Spec.BMCRef = nil, &corev1.LocalObjectReference{Name: "own"}
		}
		bmcs := []*v1alpha1.BMC{{ObjectMeta: metav1.ObjectMeta{Name: "own"}}, {ObjectMeta: metav1.ObjectMeta{Name: "twin"}}}
		bmcs[0].Spec.Access = &v1alpha1.InlineEndpoint{IP: "10.0.0.1"}
		w := inWorld(t, m, serverIn(v1alpha1.StateDiscovery, entered, behind), bmcs[0], bmcs[1], inventoryOfA())
		known := rivals.New()
		known.Note("own", rivals.Seen{UUID: "m1", Systems: []rivals.System{{UUID: machineUUID, Serials: []string{"A1B2C3"}}}})
		known.Note("twin", rivals.Seen{UUID: "m2", Systems: []rivals.System{{UUID: machineUUID, Serials: []string{"Z9Y8X7"}}}})
		w.reading(known)
		w.manager.run(30 * time.Second)
		c := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionIdentityUnproven)
		if w.prepared() != 0 || c == nil || c.Reason != v1alpha1.ReasonRivalBMC || !strings.Contains(c.Message, "BMC own and BMC twin") {
			t.Fatalf("%d boots, condition %+v", w.prepared(), c)
		}
		if stored := w.inventory().Identity; stored == nil || len(stored.Rivals) != 1 || stored.Rivals[0].Name != "twin" {
			t.Errorf("stored %+v", stored)
		}

		w.asksBy(v1alpha1.OperationProve, " ", nil)
		if op := w.server().Status.Operation; w.operation() != "prove Refused" || !strings.Contains(op.Message, "say how") {
			t.Errorf("without a reason: %+v", op)
		}
		w.asksBy(v1alpha1.OperationProve, "rack label", nil)
		if s := w.inventory().Identity.Settled; w.operation() != "prove Succeeded" || s == nil || s.By != "jane" || s.Reason != "rack label" {
			t.Errorf("%s, settled %+v", w.operation(), s)
		}
		w.manager.run(30 * time.Second)
		if w.prepared() != 1 {
			t.Errorf("%d boots are prepared after a person answered", w.prepared())
		}
	})
}

func TestAPersonAnswersForTheMachineThatReportedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := reported()
		i.Identity = &policyv1alpha1.MachineIdentity{BMC: &policyv1alpha1.BMCIdentity{}}
		i.Report.Data.SystemInfo.SystemInformation.SerialNumber = "A1B2C3"
		w := inWorld(t, newMachine(redfish.PowerOff), serverIn(v1alpha1.StateAvailable), i)
		w.manager.run(time.Minute)
		c := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionIdentityUnproven)
		if c == nil || c.Reason != v1alpha1.ReasonMachineUnproven {
			t.Fatalf("condition %+v", c)
		}
		w.asksBy(v1alpha1.OperationProve, "rack label", nil)
		id := w.inventory().Identity
		if id.Settled != nil || id.Proved == nil || id.Proved.By != "jane" || id.Proved.SystemSerial != "A1B2C3" {
			t.Errorf("identity %+v", id)
		}
		if c := meta.FindStatusCondition(w.server().Status.Conditions, v1alpha1.ConditionIdentityUnproven); c != nil {
			t.Errorf("condition %+v", c)
		}
	})
}
