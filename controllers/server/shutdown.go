// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/redfish"
)

// shutDown asks the operating system and says whether to wait for it. A manager asks once; one that comes after asks again
// where nothing shows, because its predecessor may have died before it asked. A BMC that cannot ask is not waited for.
func (v *scope) shutDown(ctx context.Context, graceful time.Duration, force bool) (loop.Progress, bool) {
	request := v.server.Status.Lifecycle.Request
	ask := v.reset(redfish.ActionGracefulShutdown)
	switch {
	case v.cutting(request):
		return loop.Progress{}, false
	case request == nil || request.Action != v1alpha1.PowerActionGracefulShutdown || request.ShownAt != nil || v.ofFormerEntry(request):
		return v.askOnce(ctx, v1alpha1.PowerActionGracefulShutdown, ask), true
	case v.unheard(request):
		return v.askAgain(ctx, request, fleet.Shutdown, ask), true
	}
	if err := v.failedWith(request); err != nil {
		if p, again := v.askWhereFailed(ctx, request, graceful, force, err, ask); again {
			return p, true
		}
	}
	return v.awaitShutdown(request, graceful, force)
}

// askWhereFailed asks again where the BMC failed at the last request, within the grace, and where force is not allowed for as long as it
// takes: else an operating system that never heard of it would have its power cut, or run on.
func (v *scope) askWhereFailed(ctx context.Context, request *v1alpha1.PowerRequest, graceful time.Duration, force bool, err error,
	ask func(context.Context, redfish.BMC) error) (p loop.Progress, again bool) {
	switch {
	case cannotAsk(err) || force && v.now.Sub(v.recordedAt(request)) >= graceful:
		return loop.Progress{}, false
	case !redfish.MayHaveHappened(err):
		return v.repeat(ctx, request, err, fleet.Shutdown, ask), true
	case v.since(request) < shutdownPause(v.PowerGrace, graceful, err):
		v.wakeIn(shutdownPause(v.PowerGrace, graceful, err) - v.since(request))
		return loop.Progress{}, false
	}
	return v.askAgain(ctx, request, fleet.Shutdown, ask), true
}

// awaitShutdown waits for the operating system, if there is time left. That is counted from the record, so that no restart begins it anew;
// who was asked late still has a while, and nobody waits for what surely was not heard.
func (v *scope) awaitShutdown(request *v1alpha1.PowerRequest, graceful time.Duration, force bool) (loop.Progress, bool) {
	err := v.failedWith(request)
	left := max(graceful-v.now.Sub(v.recordedAt(request)), v.PowerGrace-v.since(request))
	if err != nil && !redfish.MayHaveHappened(err) {
		left = 0
	}
	what := askedWords[v1alpha1.PowerActionGracefulShutdown]
	switch {
	case left > 0 && err != nil:
		return failedRequest(what, err, min(left, v.pollInterval())), true
	case left > 0:
		return loop.Waiting(waitsForPower, "the operating system to shut down", min(left, v.pollInterval())), true
	case force:
		return loop.Progress{}, false
	case err != nil:
		return failedRequest(what, err, v.PowerGrace), true
	}
	return loop.Failing(requestFailed, "the operating system did not shut down in time and the policy does not allow force", v.PowerGrace), true
}

// shutdownPause is how long after a BMC failed at a shutdown the next one is asked for: as seldom as what was accepted, but at half the
// grace where that is sooner, and not before what retryAfter says, which is 15 s at least.
func shutdownPause(powerGrace, graceful time.Duration, err error) time.Duration {
	return max(min(powerGrace, graceful/2), retryAfter(err))
}

// cannotAsk says that a BMC has no way to ask the operating system, rather than none at the moment.
func cannotAsk(err error) bool {
	var unsupported *redfish.UnsupportedError
	if errors.As(err, &unsupported) {
		return true
	}
	var refused *redfish.ResponseError
	if !errors.As(err, &refused) || refused.Method != http.MethodPost {
		return false
	}
	return slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}, refused.Status)
}
