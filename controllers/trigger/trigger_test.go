// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestWakeBeforeTheControllerStartsIsKeptOut(t *testing.T) {
	var s Source
	s.Trigger("early") // must neither block nor panic
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	if err := s.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if got := queue.Len(); got != 0 {
		t.Errorf("%d objects are queued, want 0", got)
	}
}

func TestWakingTwiceQueuesOnce(t *testing.T) {
	var s Source
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	if err := s.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	s.Trigger("a")
	s.Trigger("a")
	if got := queue.Len(); got != 1 {
		t.Errorf("%d objects are queued, want 1", got)
	}
}

func TestSooner(t *testing.T) {
	for name, c := range map[string]struct{ a, b, want time.Duration }{
		"never and never is never":         {0, 0, 0},
		"never and something is something": {0, 3, 3},
		"something and never is something": {3, 0, 3},
		"of two the shorter":               {3, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Earlier(c.a, c.b); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
