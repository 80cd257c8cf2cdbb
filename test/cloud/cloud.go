// SPDX-License-Identifier: Apache-2.0

// Package cloud stands in for cloud-provider-metal, the cloud controller of Kubernetes clusters whose Nodes run on claimed servers. The
// Go module of that program is not served where this project is built and tested. The stand-in does what the real one does with
// maintenance, in six points, and nothing else:
//
//  1. A claim's label maintenance-needed=true is mirrored to the Node. Any other value, or none, takes it off the Node.
//  2. A Node that bears maintenance-requested=true gets a finalizer. A ServerMaintenance named after its claim is made with a label
//     that says who manages it, policy OwnerApproval, priority 100, and neither power nor boot template. One of that name without the
//     label is left alone.
//  3. When the request is taken back or the Node is deleted, that ServerMaintenance is deleted, its label checked, and the finalizer
//     removed.
//  4. The claim bears maintenance-approved=true while it bears needed=true and its Node approved=true. Otherwise an approval of the
//     value "true" is removed from the claim, also one written by hand.
//  5. Only labels and only their new names are read and written.
//  6. ServerMaintenances are read through a cache. Nothing is drained.
package cloud

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

const (
	// Finalizer keeps a Node until its maintenance is deleted.
	Finalizer = "metal.ironcore.dev/cloud-provider-metal"
	// ManagedBy is the value of the label that tells the maintenances of the cloud controller.
	ManagedBy = "cloud-provider-metal"
	// Priority is that of its maintenances.
	Priority = 100

	managedByLabel = "app.kubernetes.io/managed-by"
	yes            = "true"
	provider       = "metal://"

	// conflictPause is how long the cache is given to show what another program wrote.
	conflictPause = 200 * time.Millisecond
)

// Setup adds the cloud controller to a manager.
func Setup(mgr ctrl.Manager) error {
	r := &reconciler{client: mgr.GetClient()}
	return ctrl.NewControllerManagedBy(mgr).Named("cloud").For(&corev1.Node{}).
		Watches(&v1alpha1.ServerClaim{}, handler.EnqueueRequestsFromMapFunc(r.nodesOf)).
		Watches(&v1alpha1.ServerMaintenance{}, handler.EnqueueRequestsFromMapFunc(r.nodesOf)).
		WithOptions(controller.Options{SkipNameValidation: ptr.To(true)}).Complete(r)
}

type reconciler struct{ client client.Client }

// nodesOf names the Nodes of the claim that an object is, or is named after.
func (r *reconciler) nodesOf(ctx context.Context, o client.Object) []reconcile.Request {
	var nodes corev1.NodeList
	if err := r.client.List(ctx, &nodes); err != nil {
		return nil
	}
	var all []reconcile.Request
	for i := range nodes.Items {
		if claim, is := claimOf(&nodes.Items[i]); is && claim == client.ObjectKeyFromObject(o) {
			all = append(all, reconcile.Request{NamespacedName: types.NamespacedName{Name: nodes.Items[i].Name}})
		}
	}
	return all
}

// claimOf is the claim that a Node's provider ID names.
func claimOf(n *corev1.Node) (types.NamespacedName, bool) {
	namespace, name, found := strings.Cut(strings.TrimPrefix(n.Spec.ProviderID, provider), "/")
	is := found && strings.HasPrefix(n.Spec.ProviderID, provider) && namespace != "" && name != "" && !strings.Contains(name, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}, is
}

// Reconcile implements reconcile.Reconciler. A conflict is another writer's turn: it is tried again.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	n := &corev1.Node{}
	if err := r.client.Get(ctx, req.NamespacedName, n); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	key, is := claimOf(n)
	if !is {
		return reconcile.Result{}, nil
	}
	claim := &v1alpha1.ServerClaim{}
	err := r.client.Get(ctx, key, claim)
	switch {
	case apierrors.IsNotFound(err):
		claim = nil
	case err != nil:
		return reconcile.Result{}, err
	}
	err = r.serve(ctx, n, key, claim)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

func (r *reconciler) serve(ctx context.Context, n *corev1.Node, key types.NamespacedName, claim *v1alpha1.ServerClaim) error {
	if !n.DeletionTimestamp.IsZero() || n.Labels[v1alpha1.MaintenanceRequestedLabel] != yes {
		if err := r.withdraw(ctx, n, key); err != nil { // point 3
			return err
		}
	} else if claim != nil && claim.Spec.ServerRef != nil {
		if err := r.request(ctx, n, key, claim.Spec.ServerRef.Name); err != nil { // point 2
			return err
		}
	}
	if claim == nil || !n.DeletionTimestamp.IsZero() {
		return nil
	}
	needed := claim.Labels[v1alpha1.MaintenanceNeededLabel] == yes
	if err := r.label(ctx, n, v1alpha1.MaintenanceNeededLabel, needed); err != nil { // point 1
		return err
	}
	return r.label(ctx, claim, v1alpha1.MaintenanceApprovedLabel, needed && n.Labels[v1alpha1.MaintenanceApprovedLabel] == yes) // point 4
}

// request makes the maintenance of a claim's server, after the Node was given the finalizer.
func (r *reconciler) request(ctx context.Context, n *corev1.Node, key types.NamespacedName, server string) error {
	before := n.DeepCopy()
	if controllerutil.AddFinalizer(n, Finalizer) {
		if err := r.patch(ctx, n, before); err != nil {
			return err
		}
	}
	m := &v1alpha1.ServerMaintenance{}
	if err := r.client.Get(ctx, key, m); !apierrors.IsNotFound(err) {
		return err // or there is one, ours or not
	}
	m = &v1alpha1.ServerMaintenance{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name,
		Labels: map[string]string{managedByLabel: ManagedBy}}}
	m.Spec.Policy, m.Spec.Priority = v1alpha1.ServerMaintenancePolicyOwnerApproval, Priority
	m.Spec.ServerRef.Name = server
	return r.client.Create(ctx, m)
}

// withdraw deletes the maintenance that the cloud controller made, and then takes the finalizer off the Node.
func (r *reconciler) withdraw(ctx context.Context, n *corev1.Node, key types.NamespacedName) error {
	m := &v1alpha1.ServerMaintenance{}
	err := r.client.Get(ctx, key, m)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && m.Labels[managedByLabel] == ManagedBy && m.DeletionTimestamp.IsZero() {
		if err := client.IgnoreNotFound(r.client.Delete(ctx, m)); err != nil {
			return err
		}
	}
	before := n.DeepCopy()
	if !controllerutil.RemoveFinalizer(n, Finalizer) {
		return nil
	}
	return r.patch(ctx, n, before)
}

// label gives an object a label with the value "true", or takes it off. A claim keeps an approval of another value, which the cloud
// controller does not write.
func (r *reconciler) label(ctx context.Context, o client.Object, key string, wanted bool) error {
	value, there := o.GetLabels()[key]
	if _, isClaim := o.(*v1alpha1.ServerClaim); (value == yes) == wanted && (wanted || isClaim || !there) {
		return nil
	}
	before := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a deep copy has the type of its original
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	delete(labels, key)
	if wanted {
		labels[key] = yes
	}
	o.SetLabels(labels)
	return r.patch(ctx, o, before)
}

func (r *reconciler) patch(ctx context.Context, o, before client.Object) error {
	return r.client.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
