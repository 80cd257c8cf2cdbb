// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/maintenance"
)

func check(t *testing.T, must string) []maintenance.Check {
	t.Helper()
	expression, err := maintenance.Condition(must)
	if err != nil {
		t.Fatal(err)
	}
	return []maintenance.Check{{Name: "on", Must: expression, Within: 10 * time.Minute}}
}

func powered(s *v1alpha1.Server) { s.Status.PowerState = v1alpha1.PowerStateOn }

// second is a free server with a maintenance of its own.
func second() (*v1alpha1.Server, *v1alpha1.ServerMaintenance) {
	return free(func(s *v1alpha1.Server) { s.Name, s.UID, s.Spec.SystemUUID = "s2", "uid-s2", "uuid-2" }),
		sm("b", func(m *v1alpha1.ServerMaintenance) { m.Spec.ServerRef.Name = "s2" })
}

func TestACheckBeforeHoldsTheMaintenanceBackForItsTime(t *testing.T) {
	w := newWorld(t, free(), sm("a"))
	w.policy = &maintenance.Policy{Pre: check(t, `server.power == "On"`)}
	w.rounds()
	w.is("a", "Pending CheckFails")
	w.after(9 * time.Minute)
	w.is("a", "Pending CheckFails")
	w.after(time.Minute)
	w.is("a", "Failed CheckFails")
}

func TestACheckAfterwardsStopsOthersWhereItFails(t *testing.T) {
	w := newWorld(t, free(), sm("a"))
	w.policy = &maintenance.Policy{Post: check(t, `server.power == "On"`), Stop: maintenance.Stop{Failed: 1}}
	w.rounds()
	w.delete(sm("a"))
	w.rounds()
	w.after(10 * time.Minute)
	w.is("a", "Failed ServerGranted")
	if w.server().Spec.ServerMaintenanceRef != nil {
		t.Error("it keeps its server")
	}
	server, other := second()
	status := server.Status.DeepCopy()
	w.remake(server)
	change(w, server, func(s *v1alpha1.Server) { s.Status = *status })
	w.remake(other)
	w.rounds()
	w.is("b", "Pending Stopped")
	change(w, free(), powered)
	w.rounds()
	w.gone("a")
	w.is("b", "InMaintenance ServerGranted")
}

func TestABudgetOfTheFleetControlBoundsMaintenances(t *testing.T) {
	control := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}
	control.Spec.Budgets = []policyv1alpha1.Budget{
		{Name: "two-by-two", Action: policyv1alpha1.ActionMaintenance, Max: ptr.To[int32](1)},
		{Name: "of-another-action", Action: policyv1alpha1.ActionWipe, Max: ptr.To[int32](0)}}
	server, other := second()
	w := newWorld(t, free(), sm("a"), server, other, control)
	w.rounds()
	w.is("a", "InMaintenance ServerGranted")
	w.is("b", "Pending LimitReached")
	w.delete(sm("a"))
	w.rounds()
	w.is("b", "InMaintenance ServerGranted")
}

func TestAWindowOpensByTheClockAlone(t *testing.T) {
	window, err := maintenance.NewWindow(maintenance.Window{Name: "nights", Opens: "0 22 * * *", Zone: "UTC", Lasts: 4 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, free(), sm("a"))
	w.policy = &maintenance.Policy{Windows: []maintenance.Window{window}, Expected: time.Hour}
	w.rounds()
	w.is("a", "Pending WindowClosed")
	result, err := w.s.Reconcile(t.Context(), pass{})
	if err != nil || result.RequeueAfter != recheck {
		t.Errorf("again in %s, error %v", result.RequeueAfter, err)
	}
	w.at = noon.Add(10*time.Hour - time.Minute)
	if result, err = w.s.Reconcile(t.Context(), pass{}); err != nil || result.RequeueAfter != time.Minute {
		t.Errorf("again in %s, error %v", result.RequeueAfter, err)
	}
	w.after(time.Minute)
	w.rounds()
	w.is("a", "InMaintenance ServerGranted")
}
