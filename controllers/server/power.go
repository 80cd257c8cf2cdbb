// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// Reasons of pending and failed power effects.
const (
	waitsForReading = "WaitsForReading"
	waitsForPower   = "WaitsForPower"
	waitsForBoot    = "WaitsForBoot"
	requestFailed   = "RequestFailed"
	// overrideIgnored: the BMC took the boot override of a power-on and does not show it, so the machine stays off.
	overrideIgnored = v1alpha1.ReasonBootOverrideIgnored
)

// powerKnown sees to a fresh reading with a power state that can be acted on.
func (v *visit) powerKnown() (loop.Progress, bool) {
	if v.targetErr != nil {
		return loop.Waiting(waitsForReading, v.targetErr.Error(), 0), false
	}
	fresh := v.fresh()
	if !fresh {
		v.refresh()
	}
	power := v.reading.Value.Power
	switch {
	case v.reading.Err != nil:
		return loop.Waiting(waitsForReading, "the BMC, which does not answer: "+words(v.reading.Err), 0), false
	case v.reading.Tried && v.facts.BMC.Identity != policies.IdentitySame:
		return loop.Waiting(waitsForReading, "the BMC to answer for this server's own machine", v.pollInterval()), false
	case v.reading.Tried && power != redfish.PowerOn && power != redfish.PowerOff: // said of an old reading too, so that it stays the same
		return loop.Waiting(waitsForPower, fmt.Sprintf("the BMC to say whether the machine is on; its power is %s",
			cmp.Or(power, redfish.PowerUnknown)), v.pollInterval()), false
	case !fresh:
		return loop.Waiting(waitsForReading, "a fresh reading of the BMC", 0), false
	}
	return loop.Progress{}, true
}

func (v *visit) shows(power redfish.PowerState) bool {
	return v.facts.BMC.Identity == policies.IdentitySame && v.reading.Reachable() && v.reading.Value.Power == power
}

// powerOn makes the machine run from the boot configuration in force.
func (v *visit) powerOn(ctx context.Context, effect engine.Effect) loop.Progress {
	if v.shows(redfish.PowerOn) {
		if p := v.outstanding(redfish.PowerOff); p.Phase != loop.Done {
			return p
		}
		v.giveUp()
		return v.clearOverride(ctx)
	}
	if !v.facts.Boot.Ready {
		return loop.Waiting(waitsForBoot, v.bootMessage(), 0)
	}
	uri, want, target := v.server.Spec.SystemURI, v.want(), v.BootTarget
	p := v.askOnce(ctx, v1alpha1.PowerActionOn, func(ctx context.Context, bmc redfish.BMC) error {
		return bmc.PowerOnOnce(ctx, uri, want, target)
	})
	if v.commit != nil { // it is about to be asked for
		l := v.server.Status.Lifecycle
		l.Marks = moved(l.Marks, engine.Decision{Marks: effect.Earns})
	}
	return p
}

// powerOff makes the machine stop: first by asking its operating system, for as long as graceful says, then by force.
func (v *visit) powerOff(ctx context.Context, effect engine.Effect) loop.Progress {
	graceful := effect.Param("graceful").Duration()
	force := graceful == 0 || effect.Param("thenForce").Bool()
	return v.stop(ctx, graceful, force)
}

func (v *visit) stop(ctx context.Context, graceful time.Duration, force bool) loop.Progress {
	if v.shows(redfish.PowerOff) {
		if p := v.outstanding(redfish.PowerOn); p.Phase != loop.Done {
			return p
		}
		if request := v.server.Status.Lifecycle.Request; request != nil {
			request.Attempts = 0 // nobody wants that power-on any more; the next one begins anew
		}
		return v.clearOverride(ctx) // of a power-on that failed
	}
	if graceful > 0 {
		if p, wait := v.shutDown(ctx, graceful, force); wait {
			return p
		}
	}
	return v.askOnce(ctx, v1alpha1.PowerActionForceOff, v.reset(redfish.ActionForceOff))
}

// shutDown asks the operating system and says whether to wait for it. A manager asks once; one that comes after asks again
// where nothing shows, because its predecessor may have died before it asked. A BMC that cannot ask is not waited for.
func (v *visit) shutDown(ctx context.Context, graceful time.Duration, force bool) (loop.Progress, bool) {
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
func (v *visit) askWhereFailed(ctx context.Context, request *v1alpha1.PowerRequest, graceful time.Duration, force bool, err error,
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
func (v *visit) awaitShutdown(request *v1alpha1.PowerRequest, graceful time.Duration, force bool) (loop.Progress, bool) {
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

// cutting says that the power is being cut: there is nobody left to ask.
func (v *visit) cutting(request *v1alpha1.PowerRequest) bool {
	return request != nil && request.Action == v1alpha1.PowerActionForceOff &&
		(v.since(request) < v.PowerGrace || (request.ShownAt == nil && !v.ofFormerEntry(request)))
}

// ofFormerEntry says that a request was made before the present entry, and so for another reason. Times tell it only where
// the record does not say: those of two managers are by two clocks.
func (v *visit) ofFormerEntry(request *v1alpha1.PowerRequest) bool {
	l := v.server.Status.Lifecycle
	switch {
	case request == nil:
		return false
	case request.Entry != 0:
		return request.Entry != l.Entry
	}
	return request.AskedAt.Time.Before(l.EnteredAt.Time)
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

// giveUp forgets a power-off that did not come true and that nobody wants any more, so that the next one begins with a
// shutdown again, and its operating system gets the whole of its grace.
func (v *visit) giveUp() {
	if l := v.server.Status.Lifecycle; l.Request != nil && shownAs[l.Request.Action] == redfish.PowerOff {
		l.Request = nil
	}
}

// powerAsClaimed follows the bound claim.
func (v *visit) powerAsClaimed(ctx context.Context, effect engine.Effect) loop.Progress {
	if v.claim.Spec.Power == v1alpha1.PowerOn {
		p := v.powerOn(ctx, effect)
		v.recordShown() // what shows in this reconcile counts
		if p.Phase == loop.Done && !policies.BootedForClaim(v.server) {
			return loop.Failing(v1alpha1.ReasonSwitchedOnByHand, "somebody else switched the machine on before it was booted for the "+
				"claim, and it runs what it found; it boots once the claim asks for power Off and then On", 0)
		}
		return p
	}
	return v.stop(ctx, shutdownGrace, true)
}

func (v *visit) reset(action redfish.PowerAction) func(context.Context, redfish.BMC) error {
	uri, want := v.server.Spec.SystemURI, v.want()
	return func(ctx context.Context, bmc redfish.BMC) error { return bmc.Reset(ctx, uri, want, action) }
}
