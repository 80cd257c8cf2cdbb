// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/readiness/taints"
)

// ofRule wakes the servers that a rule selects.
func (r *reconciler) ofRule(ctx context.Context, o client.Object) []reconcile.Request {
	object, ok := o.(*v1alpha1.ServerReadinessRule)
	if !ok {
		return nil
	}
	rule, err := taints.RuleOf(object)
	if err != nil {
		return nil // whoever reads the rules says so
	}
	var servers v1alpha1.ServerList
	if err := r.client.List(ctx, &servers, client.MatchingLabelsSelector{Selector: rule.Selects}, client.UnsafeDisableDeepCopy); err != nil {
		logf.FromContext(ctx).Error(err, "servers that a rule selects are not looked at", "rule", rule.Name)
		return nil // the cache answers from memory; it fails only while the manager stops
	}
	var requests []reconcile.Request
	for i := range servers.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: servers.Items[i].Name}})
	}
	return requests
}

// serverChanges leaves out what no taint follows from: a Server changes more often than its conditions do.
func serverChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok1 := e.ObjectOld.(*v1alpha1.Server)
		now, ok2 := e.ObjectNew.(*v1alpha1.Server)
		return ok1 && ok2 && (!slices.Equal(was.Spec.Taints, now.Spec.Taints) || !maps.Equal(was.Labels, now.Labels) ||
			!maps.Equal(was.Annotations, now.Annotations) ||
			!slices.EqualFunc(was.Status.Conditions, now.Status.Conditions, sameStatus))
	}}
}

func sameStatus(a, b metav1.Condition) bool { return a.Type == b.Type && a.Status == b.Status }

// ruleChanges passes what brings a rule into force or ends it: the rest of it cannot change.
func ruleChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, now := e.ObjectOld, e.ObjectNew
		return was.GetUID() != now.GetUID() || was.GetDeletionTimestamp().IsZero() != now.GetDeletionTimestamp().IsZero() ||
			!slices.Equal(was.GetFinalizers(), now.GetFinalizers()) || !maps.Equal(was.GetAnnotations(), now.GetAnnotations())
	}}
}
