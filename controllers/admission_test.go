// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/metalaw/metalaw/controllers/heartbeat"
)

// started takes in what is added to a manager, and does nothing else.
type started struct {
	manager.Manager
	runnables []manager.Runnable
}

func (s *started) Add(r manager.Runnable) error {
	s.runnables = append(s.runnables, r)
	return nil
}

func TestWhatIsLoggedWhenTheWaitEnds(t *testing.T) {
	for name, c := range map[string]struct {
		stops time.Duration
		want  int
	}{
		"that the controllers begin all the same":   {time.Hour, 1},
		"nothing where the manager stops meanwhile": {time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lines := 0
				log := funcr.New(func(string, string) { lines++ }, funcr.Options{})
				ctx, cancel := context.WithTimeout(logf.IntoContext(t.Context(), log), c.stops)
				defer cancel()
				newAdmitted(&started{}, func(*http.Request) error { return errors.New("not started") }).await(ctx)
				synctest.Wait()
				if lines != c.want {
					t.Errorf("logged %d lines, want %d", lines, c.want)
				}
			})
		})
	}
}

func TestAnOutageLastsUntilTheControllersBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := coordinationv1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		last := time.Now().Add(-time.Hour)
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "metalaw-heartbeat"}}
		lease.Spec.RenewTime = &metav1.MicroTime{Time: last}
		api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(lease).Build()
		beat := &heartbeat.Heartbeat{Client: api, Reader: api, Namespace: "ns"}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		const answers = 20 * time.Second
		began := time.Now()
		inner := &started{}
		mgr := newAdmitted(inner, func(*http.Request) error {
			if time.Since(began) < answers {
				return errors.New("not started")
			}
			return nil
		})
		if err := mgr.Add(beat); err != nil {
			t.Fatal(err)
		}
		go func() { _ = inner.runnables[0].Start(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		outage := beat.Outage()
		if !outage.From.Equal(last) || outage.Until.Sub(began).Round(time.Second) != answers {
			t.Errorf("out from %s before to %s after the start", began.Sub(outage.From), outage.Until.Sub(began))
		}
		if absent := beat.Absent(last, time.Now()).Round(time.Second); absent != time.Hour+answers {
			t.Errorf("absent for %s", absent)
		}
		cancel()
		synctest.Wait()
	})
}

func TestControllersBeginOnceTheWebhooksListen(t *testing.T) {
	for name, c := range map[string]struct {
		// answers is when the webhooks of this process begin to answer; negative where it serves none.
		answers time.Duration
		// stops is when the manager stops; 0 where it does not.
		stops time.Duration
		want  time.Duration
		none  bool
	}{
		"at once where this process serves none":        {answers: -1, want: 0},
		"at once where they answer already":             {answers: 0, want: 0},
		"as soon as they answer":                        {answers: 2 * time.Second, want: 2 * time.Second},
		"after a while all the same":                    {answers: time.Hour, want: admissionPatience},
		"not at all where the manager stops before":     {answers: time.Hour, stops: time.Second, none: true},
		"at once where it stops and they answer before": {answers: 0, stops: time.Second, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				began := time.Now()
				answers := func(*http.Request) error {
					if time.Since(began) < c.answers {
						return errors.New("not started")
					}
					return nil
				}
				if c.answers < 0 {
					answers = nil
				}
				inner := &started{}
				mgr := newAdmitted(inner, answers)
				var begun []time.Duration
				for range 2 {
					if err := mgr.Add(manager.RunnableFunc(func(context.Context) error {
						begun = append(begun, time.Since(began).Round(time.Second))
						return nil
					})); err != nil {
						t.Fatal(err)
					}
				}
				if c.stops > 0 {
					time.AfterFunc(c.stops, cancel)
				}
				for _, r := range inner.runnables {
					if err := r.Start(ctx); err != nil {
						t.Fatal(err)
					}
				}
				switch {
				case c.none && len(begun) > 0:
					t.Errorf("begun %v", begun)
				case !c.none && (len(begun) != 2 || begun[0] != c.want):
					t.Errorf("begun %v, want %s", begun, c.want)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}
