// SPDX-License-Identifier: Apache-2.0

// Package trigger lets background work call a reconciler: what finished, changed or came due outside the API server.
package trigger

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// UnderWay is the priority in a controller's queue of an object that is in the middle of its steps, or that got what it waited for. Other
// requests have 0. So a controller ends what it began before it begins more, and readings do not grow old meanwhile.
const UnderWay = 1

func addAhead[Request comparable](queue workqueue.TypedRateLimitingInterface[Request], requests ...Request) {
	if byPriority, ok := queue.(priorityqueue.PriorityQueue[Request]); ok {
		priority := UnderWay
		byPriority.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, requests...)
		return
	}
	for _, r := range requests {
		queue.Add(r)
	}
}

// Ahead queues the requests that an object calls for with priority UnderWay, whenever that object comes, changes or goes. The requests of an
// object that is there when the controller starts, or that a watch shows again unchanged, keep their usual priority.
func Ahead(calls handler.MapFunc) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	plain := handler.EnqueueRequestsFromMapFunc(calls)
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if e.IsInInitialList {
				plain.Create(ctx, e, q)
				return
			}
			addAhead(q, calls(ctx, e.Object)...)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
				plain.Update(ctx, e, q)
				return
			}
			addAhead(q, append(calls(ctx, e.ObjectOld), calls(ctx, e.ObjectNew)...)...)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { addAhead(q, calls(ctx, e.Object)...) },
	}
}

// TypedSource is a source of a controller that never blocks who wakes: a call is remembered in the controller's own
// queue, once per request. Calls before the controller starts are kept out, because it reads every object when it starts.
type TypedSource[Request comparable] struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[Request]
}

// Start implements source.TypedSource.
func (s *TypedSource[Request]) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[Request]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = queue
	return nil
}

// Add has the request reconciled as soon as a worker is free. Repeated calls before that are one.
func (s *TypedSource[Request]) Add(request Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue != nil {
		s.queue.Add(request)
	}
}

// AddAfter does so after a while. Of repeated calls before that the earliest counts.
func (s *TypedSource[Request]) AddAfter(request Request, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue != nil {
		s.queue.AddAfter(request, after)
	}
}

// Source is the TypedSource of a controller of objects.
type Source struct {
	TypedSource[reconcile.Request]
}

var _ source.Source = (*Source)(nil)

// Trigger has the cluster-scoped object reconciled as soon as a worker is free, with priority UnderWay: what it waited for has come.
// Repeated calls before that are one.
func (s *Source) Trigger(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue != nil {
		addAhead(s.queue, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
}

// Earlier is the earlier of two times to look again, where 0 is never.
func Earlier(a, b time.Duration) time.Duration {
	if a <= 0 || (b > 0 && b < a) {
		return max(b, 0)
	}
	return a
}
