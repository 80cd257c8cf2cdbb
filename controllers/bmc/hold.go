// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/internal/stored"
)

// hold marks the Servers of a BMC that asks to leave them alone. It is a reconciler of its own, because neither the loop of
// the BMC nor that of the Server looks at an object that is left alone.
type hold struct{ client client.Client }

func setupHold(mgr ctrl.Manager, c client.Client) error {
	h := &hold{client: c}
	if err := ctrl.NewControllerManagedBy(mgr).
		Named("bmc-hold").
		For(&v1alpha1.BMC{}, builder.WithPredicates(asksOtherwise)).
		Complete(reconcile.Func(h.markAll)); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("server-hold").
		For(&v1alpha1.Server{}, builder.WithPredicates(holdMayChange)).
		Complete(h)
}

var (
	notDeleted = predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }}

	// holdMayChange passes Servers that are new, name another BMC or lost or got the mark.
	holdMayChange = predicate.And(notDeleted, onChange(func(s *v1alpha1.Server) [2]string {
		return [2]string{bmcOf(s), s.Annotations[v1alpha1.HeldByBMCAnnotation]}
	}))
	// asksOtherwise passes BMCs that are new, and those that begin or cease to ask to leave their Servers alone.
	asksOtherwise = predicate.And(notDeleted, onChange(v1alpha1.IgnoresChildren))
)

// markAll marks each Server of one BMC. It is a reconciler too, so that a Server which could not be listed or marked is tried
// again.
func (h *hold) markAll(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	var servers v1alpha1.ServerList
	if err := h.client.List(ctx, &servers, client.MatchingFields{fieldindex.ServerByBMC: r.Name}); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the servers of BMC %s, which may ask to leave them alone: %w", r.Name, err)
	}
	var failed []error
	for i := range servers.Items {
		_, err := h.Reconcile(ctx, request(servers.Items[i].Name))
		failed = append(failed, err)
	}
	return reconcile.Result{}, errors.Join(failed...)
}

// Reconcile implements reconcile.Reconciler.
func (h *hold) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	server := &v1alpha1.Server{}
	if err := h.client.Get(ctx, r.NamespacedName, server); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	bmc, err := h.bmcOf(ctx, server)
	if err != nil {
		return reconcile.Result{}, err
	}
	mark := holdOn(server, bmc)
	if mark == server.Annotations[v1alpha1.HeldByBMCAnnotation] {
		return reconcile.Result{}, nil
	}
	before := server.DeepCopy()
	if mark == "" {
		delete(server.Annotations, v1alpha1.HeldByBMCAnnotation)
	} else {
		metav1.SetMetaDataAnnotation(&server.ObjectMeta, v1alpha1.HeldByBMCAnnotation, mark)
	}
	return reconcile.Result{}, client.IgnoreNotFound(h.client.Patch(ctx, server, client.MergeFrom(before)))
}

// bmcOf is the BMC that a Server names; nil where it names none or there is none.
func (h *hold) bmcOf(ctx context.Context, s *v1alpha1.Server) (*v1alpha1.BMC, error) {
	name := bmcOf(s)
	if name == "" {
		return nil, nil
	}
	return stored.One[v1alpha1.BMC](ctx, h.client, "", name)
}

// holdOn is the value that HeldByBMCAnnotation of a Server is to have; empty for none. A BMC that does not exist says nothing,
// so that the Server keeps what it has: the BMC may come back out of a backup.
func holdOn(s *v1alpha1.Server, bmc *v1alpha1.BMC) string {
	switch {
	case s.Spec.BMCRef == nil:
		return ""
	case bmc == nil:
		return s.Annotations[v1alpha1.HeldByBMCAnnotation]
	case v1alpha1.IgnoresChildren(bmc):
		return bmc.Name
	}
	return ""
}
