// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"net/http"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// admissionPatience is how long the controllers wait at most until the webhooks of this process listen. Those of another
	// replica may answer all the time.
	admissionPatience = 30 * time.Second
	// admissionLook is how often it is looked whether they do.
	admissionLook = 50 * time.Millisecond
)

// admitted is a manager whose runnables begin their work once the webhooks of this process listen. A write before that is
// refused, where nobody else answers. That they listen is seen from inside: the Service in front of them sends the API
// server's questions here only once this process counts as ready, seconds later, and what is written until then may still be
// refused, and is tried again.
type admitted struct {
	manager.Manager
	// answers fails until the webhooks listen; nil where this process serves none.
	answers healthz.Checker
	// patience is how long the wait lasts at most.
	patience time.Duration
	once     sync.Once
	over     chan struct{}
}

func newAdmitted(mgr manager.Manager, answers healthz.Checker) *admitted {
	return &admitted{Manager: mgr, answers: answers, patience: admissionPatience, over: make(chan struct{})}
}

// Add implements manager.Manager.
func (m *admitted) Add(r manager.Runnable) error {
	if m.answers == nil {
		return m.Manager.Add(r)
	}
	return m.Manager.Add(&awaiting{Runnable: r, admitted: m})
}

// await returns when the webhooks listen, when they were waited for long enough, or when the context ends.
func (m *admitted) await(ctx context.Context) {
	m.once.Do(func() { go m.look(ctx) })
	select {
	case <-m.over:
	case <-ctx.Done():
	}
}

// look ends the wait. A manager that stops meanwhile begins nothing, and so says nothing.
func (m *admitted) look(ctx context.Context) {
	defer close(m.over)
	waiting, cancel := context.WithTimeout(ctx, m.patience)
	defer cancel()
	req, err := http.NewRequestWithContext(waiting, http.MethodGet, "/", http.NoBody)
	if err != nil {
		return // cannot happen: method and address are constant
	}
	tick := time.NewTicker(admissionLook)
	defer tick.Stop()
	for {
		err := m.answers(req)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-waiting.Done():
			if ctx.Err() == nil {
				logf.FromContext(ctx).Info("the webhooks of this replica do not listen yet; its controllers begin all the same, because others may",
					"cause", err.Error())
			}
			return
		}
	}
}

// awaiting is a runnable that begins once the webhooks listen.
type awaiting struct {
	manager.Runnable
	admitted *admitted
}

// Start implements manager.Runnable.
func (a *awaiting) Start(ctx context.Context) error {
	a.admitted.await(ctx)
	select {
	case <-ctx.Done():
		return nil // it was stopped before it began
	default:
		return a.Runnable.Start(ctx)
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (a *awaiting) NeedLeaderElection() bool {
	r, ok := a.Runnable.(manager.LeaderElectionRunnable)
	return !ok || r.NeedLeaderElection()
}
