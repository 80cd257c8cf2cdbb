// SPDX-License-Identifier: Apache-2.0

// Package wake lets background work call a reconciler: what finished, changed or came due outside the API server.
package wake

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Source is a source of a controller that never blocks who wakes: a call is remembered in the controller's own queue,
// once per object. Calls before the controller starts are kept out, because it reads every object when it starts.
type Source struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

var _ source.Source = (*Source)(nil)

// Start implements source.Source.
func (s *Source) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = queue
	return nil
}

// Wake has the cluster-scoped object reconciled as soon as a worker is free. Repeated calls before that are one.
func (s *Source) Wake(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue != nil {
		s.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
}
