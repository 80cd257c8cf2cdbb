// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
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

func TestControllersBeginOnceTheWebhooksAnswer(t *testing.T) {
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
