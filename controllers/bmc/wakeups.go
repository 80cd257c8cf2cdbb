// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
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
		log.FromContext(ctx).Error(err, "cannot find the BMCs to wake", "index", index, "value", value)
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

// ofServer wakes the BMC that a Server names, and the one that it named before.
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

// incumbentChanged wakes the BMCs that wait for another one. What was held for one that went without its finalizer is
// dropped as well.
func (s *subject) incumbentChanged() handler.EventHandler {
	wakeAll := func(q queue, incumbent string) {
		for _, newcomer := range s.newcomers.take(incumbent) {
			q.Add(request(newcomer))
		}
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { wakeAll(q, e.ObjectNew.GetName()) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if b, ok := e.Object.(*v1alpha1.BMC); ok {
				s.release(b)
			}
			wakeAll(q, e.Object.GetName())
		},
	}
}

// tell reports what changed, once for each change: the conditions, and an operation that was refused.
func (s *subject) tell(ctx context.Context, before, after *v1alpha1.BMC, _ decision) {
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionSystemsAccepted, v1alpha1.ConditionReset} {
		was := meta.FindStatusCondition(before.Status.Conditions, kind)
		is := meta.FindStatusCondition(after.Status.Conditions, kind)
		if is == nil || was != nil && was.Reason == is.Reason && was.Status == is.Status {
			continue
		}
		if kind == v1alpha1.ConditionSystemsAccepted && was == nil && is.Status == metav1.ConditionTrue {
			continue // the usual case needs no event
		}
		s.Recorder.Eventf(after, nil, severity(kind, is), is.Reason, kind, "%s", loop.Shortened(is.Message, loop.MaxNote))
		log.FromContext(ctx).Info("bmc condition changed", "bmc", after.Name,
			"condition", kind, "status", is.Status, "reason", is.Reason, "message", is.Message)
	}
	asked, written := before.Annotations[v1alpha1.OperationAnnotation]
	_, still := after.Annotations[v1alpha1.OperationAnnotation]
	if written && !still && refused(asked) {
		reason, message := refuseWords(asked)
		s.Recorder.Eventf(after, nil, corev1.EventTypeWarning, reason, EffectRefuseOperation, "%s", message)
	}
}

// refused says that a BMC cannot act upon an operation.
func refused(operation string) bool {
	return operation == "" || effects(operation)[0] == EffectRefuseOperation
}

func severity(kind string, c *metav1.Condition) string {
	good := c.Status == metav1.ConditionTrue
	if kind == v1alpha1.ConditionReset {
		good = c.Reason != v1alpha1.ReasonResetFailed && c.Reason != v1alpha1.ReasonInterrupted
	}
	if good {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}
