// SPDX-License-Identifier: Apache-2.0

// Package maintenance grants ServerMaintenances their servers and takes them back. Where it is switched off, it answers those that nobody
// has answered: clients wait for a state, and one without any looks as if no manager ran.
package maintenance

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/maintenance/hold"
	"github.com/metalaw/metalaw/internal/mergepatch"
)

// conflictPause is how long the cache is given to show what somebody else wrote.
const conflictPause = 200 * time.Millisecond

const notGranted = "no manager grants maintenances in this version, and the server is not handed over; " +
	"to hand it over by hand, name this object in spec.serverMaintenanceRef of the Server"

// setupAnswers adds the controller that grants nothing to the manager.
func setupAnswers(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).Named("servermaintenance").For(&v1alpha1.ServerMaintenance{}).
		Complete(&reconciler{client: client.WithFieldOwner(mgr.GetClient(), loop.FieldOwner), now: time.Now})
}

type reconciler struct {
	client client.Client
	now    func() time.Time
}

// Reconcile implements reconcile.Reconciler. The optimistic lock keeps it from writing over a manager that answers meanwhile.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	m := &v1alpha1.ServerMaintenance{}
	if err := r.client.Get(ctx, req.NamespacedName, m); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !m.DeletionTimestamp.IsZero() {
		return r.letGo(ctx, m)
	}
	before := m.DeepCopy()
	m.Status = answer(m, r.now())
	if equality.Semantic.DeepEqual(before.Status, m.Status) {
		return reconcile.Result{}, nil
	}
	err := r.client.Status().Patch(ctx, m, mergepatch.Locked(before))
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// letGo takes the finalizer off a maintenance that is left from when this cluster's manager granted some, and that has no server. One
// that has its server says what that waits for.
func (r *reconciler) letGo(ctx context.Context, m *v1alpha1.ServerMaintenance) (reconcile.Result, error) {
	s := &v1alpha1.Server{}
	err := r.client.Get(ctx, client.ObjectKey{Name: m.Spec.ServerRef.Name}, s)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	before := m.DeepCopy()
	switch {
	case hold.Holds(s, m) && !v1alpha1.Ignored(m):
		again := reconcile.Result{RequeueAfter: recheck} // servers are not watched
		if m.Status = hold.Kept(m, s.Name, r.now()); equality.Semantic.DeepEqual(before.Status, m.Status) {
			return again, nil
		}
		return again, client.IgnoreNotFound(r.client.Status().Patch(ctx, m, mergepatch.Locked(before)))
	case hold.Left(m, s):
		controllerutil.RemoveFinalizer(m, v1alpha1.FinalizerServerMaintenance)
		return reconcile.Result{}, client.IgnoreNotFound(r.client.Patch(ctx, m, mergepatch.Locked(before)))
	}
	return reconcile.Result{}, nil
}

// answer is the status that a maintenance is to have. One without a state waits, and says that nothing grants it. One that
// another manager gave a state stays as it is; only what we said of it goes, because it does not hold any more.
func answer(m *v1alpha1.ServerMaintenance, now time.Time) v1alpha1.ServerMaintenanceStatus {
	status := *m.Status.DeepCopy()
	if v1alpha1.Ignored(m) || !m.DeletionTimestamp.IsZero() {
		return status
	}
	said := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionGranted)
	ours := said != nil && said.Reason == v1alpha1.ReasonNothingGrants
	switch {
	case status.State == "":
		status.State = v1alpha1.ServerMaintenanceStatePending
	case ours && status.State != v1alpha1.ServerMaintenanceStatePending:
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionGranted)
		return status
	case !ours:
		return status
	}
	status.ObservedGeneration = m.Generation
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: v1alpha1.ConditionGranted, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonNothingGrants, Message: notGranted, ObservedGeneration: m.Generation, LastTransitionTime: metav1.NewTime(now)})
	return status
}
