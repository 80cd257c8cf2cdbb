// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// waker is a source of a controller that never blocks who wakes. Calls before the controller starts are dropped: it looks
// at everything when it starts.
type waker[request comparable] struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[request]
}

var _ source.TypedSource[pass] = (*waker[pass])(nil)

// Start implements source.TypedSource.
func (w *waker[request]) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	return nil
}

// wake asks for a look; repeated calls before that are one.
func (w *waker[request]) wake(r request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		w.queue.Add(r)
	}
}
