// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/metalaw/metalaw/controllers/bmc/reset"
	"github.com/metalaw/metalaw/controllers/leading"
	"github.com/metalaw/metalaw/controllers/server/power"
)

// watch has the process end that stood still while it leads.
func watch(mgr ctrl.Manager, l *leading.Leader) error {
	if l == nil {
		return nil
	}
	return mgr.Add(l)
}

// fence is asked right before each write to a BMC; nil where no process is elected. What it holds back is postponed: the leader
// decides on it, and a Lease that cannot be read may be readable again.
func fence(l *leading.Leader) func(context.Context) error {
	if l == nil {
		return nil
	}
	return func(ctx context.Context) error {
		if err := l.Fence(ctx); err != nil {
			return &power.PostponedError{Cause: &reset.PostponedError{Reason: "NotLeading", Message: err.Error()}}
		}
		return nil
	}
}
