// SPDX-License-Identifier: Apache-2.0

package wake

import (
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestWakeBeforeTheControllerStartsIsKeptOut(t *testing.T) {
	var s Source
	s.Wake("early") // must neither block nor panic
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
	s.Wake("a")
	s.Wake("a")
	if got := queue.Len(); got != 1 {
		t.Errorf("%d objects are queued, want 1", got)
	}
}
