// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
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
	requestFailed   = v1alpha1.ReasonRequestFailed
	// overrideIgnored: the BMC took the boot override of a power-on and does not show it, so the machine stays off.
	overrideIgnored = v1alpha1.ReasonBootOverrideIgnored
)

// powerKnown sees to a fresh reading with a power state that can be acted on.
func (v *scope) powerKnown() (loop.Progress, bool) {
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

func (v *scope) shows(power redfish.PowerState) bool {
	return v.facts.BMC.Identity == policies.IdentitySame && v.reading.Reachable() && v.reading.Value.Power == power
}

// powerOn makes the machine run from the boot configuration in force.
func (v *scope) powerOn(ctx context.Context, effect engine.Effect) loop.Progress {
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
	target, why := bootSource(v.BootTarget, v.reading.Value.Boot.Missing, v.facts.Boot.Purpose, v.settings().Boot.WithoutOverride)
	if why != "" && v.shows(redfish.PowerOff) {
		return loop.Failing(v1alpha1.ReasonBootOverrideMissing, why, time.Minute)
	}
	uri, want := v.server.Spec.SystemURI, v.want()
	mode := redfish.BootMode(v.bootSettings().Mode)
	p := v.askOnce(ctx, v1alpha1.PowerActionOn, func(ctx context.Context, bmc redfish.BMC) error {
		return bmc.PowerOnOnce(ctx, uri, want, target, mode)
	})
	if v.commit != nil { // it is about to be asked for
		l := v.server.Status.Lifecycle
		l.Marks = moved(l.Marks, engine.Decision{Marks: effect.Earns})
	}
	return p
}

// powerOff makes the machine stop: first by asking its operating system, for as long as graceful says, then by force.
func (v *scope) powerOff(ctx context.Context, effect engine.Effect) loop.Progress {
	graceful := effect.Param("graceful").Duration()
	force := graceful == 0 || effect.Param("thenForce").Bool()
	return v.stop(ctx, graceful, force)
}

func (v *scope) stop(ctx context.Context, graceful time.Duration, force bool) loop.Progress {
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

// cutting says that the power is being cut: there is nobody left to ask.
func (v *scope) cutting(request *v1alpha1.PowerRequest) bool {
	return request != nil && request.Action == v1alpha1.PowerActionForceOff &&
		(v.since(request) < v.PowerGrace || (request.ShownAt == nil && !v.ofFormerEntry(request)))
}

// ofFormerEntry says that a request was made before the present entry, and so for another reason. Times tell it only where
// the record does not say: those of two managers are by two clocks.
func (v *scope) ofFormerEntry(request *v1alpha1.PowerRequest) bool {
	l := v.server.Status.Lifecycle
	switch {
	case request == nil:
		return false
	case request.Entry != 0:
		return request.Entry != l.Entry
	}
	return request.AskedAt.Time.Before(l.EnteredAt.Time)
}

// giveUp forgets a power-off that did not come true and that nobody wants any more, so that the next one begins with a
// shutdown again, and its operating system gets the whole of its grace.
func (v *scope) giveUp() {
	if l := v.server.Status.Lifecycle; l.Request != nil && shownAs[l.Request.Action] == redfish.PowerOff {
		l.Request = nil
	}
}

// powerAsClaimed follows the bound claim.
func (v *scope) powerAsClaimed(ctx context.Context, effect engine.Effect) loop.Progress {
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

func (v *scope) reset(action redfish.PowerAction) func(context.Context, redfish.BMC) error {
	uri, want := v.server.Spec.SystemURI, v.want()
	return func(ctx context.Context, bmc redfish.BMC) error { return bmc.Reset(ctx, uri, want, action) }
}
