// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/maintenance"
)

func condition(kind, is, reason string, ago time.Duration) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(is), Reason: reason, LastTransitionTime: metav1.NewTime(noon.Add(-ago))}
}

func inState(state v1alpha1.ServerMaintenanceState, conditions ...metav1.Condition) func(*v1alpha1.ServerMaintenance) {
	return func(m *v1alpha1.ServerMaintenance) { m.Status.State, m.Status.Conditions = state, conditions }
}

func TestTheFiguresThatAlertsRead(t *testing.T) {
	window := maintenance.Window{Name: "nights", Opens: "0 22 * * *", Zone: "UTC", Lasts: time.Hour,
		MatchLabels: maintenance.Selector{"zone": "a"}}
	window, err := maintenance.NewWindow(window)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, []client.Object{
		sm("a", inState("Pending", condition("Granted", "False", "WindowClosed", time.Hour))),
		sm("b", inState("Pending", condition("Granted", "False", "WindowClosed", 2*time.Hour))),
		sm("c", inState("InMaintenance", condition("Granted", "True", "ServerGranted", time.Hour), condition("Overdue", "True", "Overdue", 0))),
		sm("d", inState("Failed", condition("Granted", "False", "Aborted", 3*time.Hour))),
	}...)
	registry := prometheus.NewRegistry()
	policy := func() (*maintenance.Policy, string) {
		return &maintenance.Policy{Windows: []maintenance.Window{window}}, ""
	}
	if err := registry.Register(&figures{reader: w.api, policy: policy, now: func() time.Time { return noon }}); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			key := f.GetName()
			for _, l := range m.GetLabel() {
				key += " " + l.GetName() + "=" + l.GetValue()
			}
			got[key] = m.GetGauge().GetValue()
		}
	}
	want := map[string]float64{
		"metalaw_maintenance reason= state=InMaintenance":             1,
		"metalaw_maintenance reason=Aborted state=Failed":             1,
		"metalaw_maintenance reason=WindowClosed state=Pending":       2,
		"metalaw_maintenance_oldest_wait_seconds reason=WindowClosed": 7200,
		"metalaw_maintenance_overdue":                                 1,
		"metalaw_maintenance_window_opens_seconds window=nights":      36000,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsToldInEvents(t *testing.T) {
	var none v1alpha1.ServerMaintenanceStatus
	status := func(state v1alpha1.ServerMaintenanceState, conditions ...metav1.Condition) v1alpha1.ServerMaintenanceStatus {
		return v1alpha1.ServerMaintenanceStatus{State: state, Conditions: conditions}
	}
	waits := condition("Granted", "False", "WindowClosed", 0)
	other := waits
	other.Message = "another hour"
	granted := condition("Granted", "True", "ServerGranted", 0)
	for name, c := range map[string]struct {
		before, after v1alpha1.ServerMaintenanceStatus
		want          []told
	}{
		"that it waits":               {none, status("Pending", waits), []told{{"Normal", "Waits", "WindowClosed: "}}},
		"not each word of it":         {status("Pending", waits), status("Pending", other), nil},
		"that it is granted":          {status("Pending", waits), status("InMaintenance", granted), []told{{"Normal", "Granted", ""}}},
		"that it failed":              {status("InMaintenance", granted), status("Failed", granted, condition("Served", "False", "BootFailed", 0)), []told{{"Warning", "Failed", ""}}},
		"that it was stopped":         {status("InMaintenance", granted), status("Failed", condition("Granted", "False", "Aborted", 0)), []told{{"Warning", "Failed", ""}}},
		"that it takes too long":      {status("InMaintenance", granted), status("InMaintenance", granted, condition("Overdue", "True", "Overdue", 0)), []told{{"Warning", "Overdue", ""}}},
		"nothing where nothing is so": {status("InMaintenance", granted), status("InMaintenance", granted), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, eventsOf(&c.before, &c.after)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
