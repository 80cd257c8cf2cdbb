// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// gone says that nothing of a maintenance is left.
func (w *world) gone(name string) {
	w.t.Helper()
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: "ops", Name: name}, &v1alpha1.ServerMaintenance{}); !apierrors.IsNotFound(err) {
		w.t.Errorf("maintenance %s is still there: %v", name, err)
	}
	s := w.server()
	if s.Spec.ServerMaintenanceRef != nil || s.Spec.MaintenanceBootConfigurationRef != nil ||
		s.Annotations[v1alpha1.MaintenanceUIDAnnotation] != "" || s.Annotations[v1alpha1.MaintenanceClaimAnnotation] != "" {
		w.t.Errorf("the server still names it: %+v %v", s.Spec, s.Annotations)
	}
}

func TestWhatAMaintenanceOfAFreeServerWrites(t *testing.T) {
	w := newWorld(t, free(), sm("disks"))
	w.pass()
	w.lifecycle()
	w.pass()
	w.is("disks", "InMaintenance ServerGranted")
	w.delete(sm("disks"))
	w.pass()
	w.lifecycle()
	w.pass()
	w.gone("disks")
	want := []string{"patch ServerMaintenance disks", "patch Server s1", "status of ServerMaintenance disks", "patch Server s1",
		"patch ServerMaintenance disks"}
	if diff := cmp.Diff(want, w.writes); diff != "" {
		t.Error(diff)
	}
}

func TestWhatAMaintenanceOfAClaimedServerWrites(t *testing.T) {
	w := newWorld(t, free(claimed), claim(), sm("disks"))
	w.pass()
	w.is("disks", "Pending WaitsForApproval")
	if got := w.claim(); got.Labels[v1alpha1.MaintenanceNeededLabel] != "true" || got.Annotations[v1alpha1.MaintenanceNeededLabel] != "true" {
		t.Errorf("the claim is not labelled: %v %v", got.Labels, got.Annotations)
	}
	change(w, claim(), approve)
	w.pass()
	w.lifecycle()
	w.pass()
	w.is("disks", "InMaintenance ServerGranted")
	if got := w.server().Annotations[v1alpha1.MaintenanceClaimAnnotation]; got != "uid-db" {
		t.Errorf("the server names claim %q", got)
	}
	w.delete(sm("disks"))
	w.pass()
	w.lifecycle()
	w.pass()
	w.gone("disks")
	if c := w.claim(); len(c.Labels)+len(c.Annotations) > 0 {
		t.Errorf("the claim still bears %v %v", c.Labels, c.Annotations)
	}
	want := []string{"patch ServerMaintenance disks", "status of ServerMaintenance disks", "patch ServerClaim db", "patch Server s1",
		"status of ServerMaintenance disks", "patch Server s1", "patch ServerClaim db", "patch ServerMaintenance disks"}
	if diff := cmp.Diff(want, w.writes); diff != "" {
		t.Error(diff)
	}
}
