// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"time"

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
	"github.com/metalaw/metalaw/internal/fieldindex"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

func (s *subject) ofEndpoint(ctx context.Context, o client.Object) []reconcile.Request {
	return s.indexed(ctx, fieldindex.BMCByEndpoint, o.GetName())
}

func (s *subject) ofSecret(ctx context.Context, o client.Object) []reconcile.Request {
	return s.indexed(ctx, fieldindex.BMCBySecret, o.GetName())
}

func (s *subject) indexed(ctx context.Context, index, value string) []reconcile.Request {
	var list v1alpha1.BMCList
	if err := s.Client.List(ctx, &list, client.MatchingFields{index: value}); err != nil {
		log.FromContext(ctx).Error(err, "cannot find the BMCs to reconcile", "index", index, "value", value)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, request(list.Items[i].Name))
	}
	return requests
}

// concerning lets through that a Server went, names another BMC, or came into trouble at its own; nothing else about it is
// of concern here.
var concerning = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return bmcOf(e.ObjectOld) != bmcOf(e.ObjectNew) || !troubleOf(e.ObjectNew).Equal(troubleOf(e.ObjectOld))
	},
}

func troubleOf(o client.Object) time.Time {
	s, ok := o.(*v1alpha1.Server)
	if !ok {
		return time.Time{}
	}
	return troubleSince(s)
}

// ofServer triggers the BMC that a Server names, and the one that it named before.
func (s *subject) ofServer() handler.EventHandler {
	add := func(q queue, objects ...client.Object) {
		for _, o := range objects {
			if name := bmcOf(o); name != "" {
				s.cache.Retry(s.subjects.of(name)) // what concerns the one concerns the other: it is not waited for
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

// reachabilityChanged lets through that a BMC went, became usable or stopped being so.
var reachabilityChanged = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return reason(e.ObjectOld) != reason(e.ObjectNew) || unreachable(e.ObjectOld) != unreachable(e.ObjectNew)
	},
}

func unreachable(o client.Object) bool {
	b, ok := o.(*v1alpha1.BMC)
	return ok && meta.IsStatusConditionTrue(b.Status.Conditions, v1alpha1.ConditionUnreachable)
}

func reason(o client.Object) string {
	b, ok := o.(*v1alpha1.BMC)
	if !ok {
		return ""
	}
	if c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
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
