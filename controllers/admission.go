// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
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
	once    sync.Once
}

func newAdmitted(mgr manager.Manager, answers healthz.Checker) *admitted {
	return &admitted{Manager: mgr, answers: answers}
}

// Add implements manager.Manager.
func (m *admitted) Add(r manager.Runnable) error {
	if m.answers == nil {
		return m.Manager.Add(r)
	}
	return m.Manager.Add(&awaiting{Runnable: r, admitted: m})
}

// await returns when the webhooks listen, when they were waited for long enough, or when the manager stops: all of its
// runnables have one context. A manager that stops meanwhile begins nothing, and so says nothing.
func (m *admitted) await(ctx context.Context) { m.once.Do(func() { m.look(ctx) }) }

func (m *admitted) look(ctx context.Context) {
	var cause error
	err := wait.PollUntilContextTimeout(ctx, admissionLook, admissionPatience, true, func(ctx context.Context) (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
		if err != nil {
			return false, err // cannot happen: method and address are constant
		}
		cause = m.answers(req)
		return cause == nil, nil
	})
	if err != nil && ctx.Err() == nil {
		logf.FromContext(ctx).Info("the webhooks of this replica do not listen yet; its controllers begin all the same, because others may",
			"cause", fmt.Sprint(cause))
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
	if ctx.Err() == nil { // else it was stopped before it began
		return a.Runnable.Start(ctx)
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (a *awaiting) NeedLeaderElection() bool {
	r, ok := a.Runnable.(manager.LeaderElectionRunnable)
	return !ok || r.NeedLeaderElection()
}
