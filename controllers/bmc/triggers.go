// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// naming lists the BMCs that an index finds by the name of an object.
func (s *subject) naming(index string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) (requests []reconcile.Request) {
		var list v1alpha1.BMCList
		if err := s.Client.List(ctx, &list, client.MatchingFields{index: o.GetName()}); err != nil {
			log.FromContext(ctx).Error(err, "cannot find the BMCs to reconcile", "index", index, "value", o.GetName())
		}
		for i := range list.Items {
			requests = append(requests, request(list.Items[i].Name))
		}
		return requests
	}
}

// onChange passes updates that change a part of an object, and everything that is no update.
func onChange[T client.Object, P comparable](part func(T) P) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok1 := e.ObjectOld.(T)
		is, ok2 := e.ObjectNew.(T)
		return ok1 && ok2 && part(was) != part(is)
	}}
}

var (
	notCreated = predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }}

	// concerning lets through that a Server went, names another BMC, or came into trouble at its own; nothing else about it
	// is of concern here.
	concerning = predicate.And(notCreated, onChange(func(s *v1alpha1.Server) [2]string {
		return [2]string{bmcOf(s), troubleSince(s).UTC().String()}
	}))
	// reachabilityChanged lets through that a BMC went, became usable or stopped being so.
	reachabilityChanged = predicate.And(notCreated, onChange(func(b *v1alpha1.BMC) (reach struct{ reason, silent string }) {
		if ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			reach.reason = ready.Reason
		}
		if silent := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionUnreachable); silent != nil {
			reach.silent = string(silent.Status)
		}
		return reach
	}))
)

// ofServer triggers the BMC that a Server names, and the one that it named before.
func (s *subject) ofServer() handler.EventHandler {
	add := func(q queue, objects ...client.Object) {
		for _, o := range objects {
			if name := bmcOf(o); name != "" {
				s.cache.Retry(s.names.get(name)) // what concerns the one concerns the other: it is not waited for
				q.Add(request(name))
			}
		}
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { add(q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(q, e.Object) },
	}
}

func bmcOf(o client.Object) string {
	s, ok := o.(*v1alpha1.Server)
	if !ok || s.Spec.BMCRef == nil {
		return ""
	}
	return s.Spec.BMCRef.Name
}

// incumbentChanged triggers the BMCs that wait for another one. What is remembered of one that went without its finalizer
// is dropped as well.
func (s *subject) incumbentChanged() handler.EventHandler {
	triggerAll := func(q queue, incumbent string) {
		for _, newcomer := range s.newcomers.take(incumbent) {
			q.Add(request(newcomer))
		}
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { triggerAll(q, e.ObjectNew.GetName()) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if b, ok := e.Object.(*v1alpha1.BMC); ok {
				s.release(b)
			}
			triggerAll(q, e.Object.GetName())
		},
	}
}
