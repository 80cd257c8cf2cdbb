// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
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

func TestWhatIsUnderWayGoesAhead(t *testing.T) {
	named := func(name string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "version of " + name}}
	}
	ahead := Ahead(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetName()}}}
	})
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	for name, c := range map[string]struct {
		wake func(*Source, queue)
		want []string
	}{
		"what is triggered": {func(s *Source, _ queue) { s.Trigger("a") }, []string{"a", "newcomer"}},
		"what an object calls for that comes": {func(_ *Source, q queue) {
			ahead.Create(t.Context(), event.CreateEvent{Object: named("a")}, q)
		}, []string{"a", "newcomer"}},
		"what an object calls for that changes": {func(_ *Source, q queue) {
			ahead.Update(t.Context(), event.UpdateEvent{ObjectOld: named("b"), ObjectNew: named("a")}, q)
		}, []string{"b", "a", "newcomer"}},
		"what an object calls for that goes": {func(_ *Source, q queue) {
			ahead.Delete(t.Context(), event.DeleteEvent{Object: named("a")}, q)
		}, []string{"a", "newcomer"}},
		"but not what is only added": {func(s *Source, _ queue) {
			s.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}})
		}, []string{"newcomer", "a"}},
		"but not what an object calls for that is shown again unchanged": {func(_ *Source, q queue) {
			ahead.Update(t.Context(), event.UpdateEvent{ObjectOld: named("a"), ObjectNew: named("a")}, q)
		}, []string{"newcomer", "a"}},
		"but not what an object calls for that was there before": {func(_ *Source, q queue) {
			ahead.Create(t.Context(), event.CreateEvent{Object: named("a"), IsInInitialList: true}, q)
		}, []string{"newcomer", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			queue := priorityqueue.New[reconcile.Request]("test")
			defer queue.ShutDown()
			var s Source
			if err := s.Start(t.Context(), queue); err != nil {
				t.Fatal(err)
			}
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: "newcomer"}})
			c.wake(&s, queue)
			var got []string
			for range c.want {
				request, _, _ := queue.GetWithPriority()
				got = append(got, request.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("looked at in the order %v, want %v", got, c.want)
			}
		})
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
