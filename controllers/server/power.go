// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/redfish"
)

// Reasons of pending and failed power effects.
const (
	waitsForReading = "WaitsForReading"
	waitsForPower   = "WaitsForPower"
	waitsForBoot    = "WaitsForBoot"
	requestFailed   = "RequestFailed"
)

// The requests that an entry may make; see jobID.
const (
	jobOn       = "on"
	jobShutdown = "shutdown"
	jobForceOff = "force-off"
)

// overrideRetry is the time between two attempts to clear a boot override that stays.
const overrideRetry = time.Minute

// powerKnown sees to a fresh reading with a power state that can be acted on.
func (v *visit) powerKnown() (loop.Progress, bool) {
	if !v.fresh() {
		v.Desk.Refresh(v.server.Name, v.target, 0)
		message := "a fresh reading of the BMC"
		if v.reading.Err != nil {
			message = "the BMC, which does not answer: " + words(v.reading.Err)
		}
		return loop.Waiting(waitsForReading, message, 0), false
	}
	switch v.reading.Value.Power {
	case redfish.PowerOn, redfish.PowerOff:
		return loop.Progress{}, true
	default:
		return loop.Waiting(waitsForPower, fmt.Sprintf("power is %s", v.reading.Value.Power), v.pollInterval()), false
	}
}

// powerOn makes the machine run from the boot configuration in force.
func (v *visit) powerOn(ctx context.Context) loop.Progress {
	if v.reading.Reachable() && v.reading.Value.Power == redfish.PowerOn {
		v.Desk.Repeat(v.server.Name, v.jobID(jobShutdown), v.jobID(jobForceOff))
		return v.clearOverride(ctx)
	}
	if !v.facts.Boot.Ready {
		return loop.Waiting(waitsForBoot, v.bootMessage(), 0)
	}
	if p, ok := v.powerKnown(); !ok {
		return p
	}
	if v.reading.Value.Power == redfish.PowerOn {
		return v.clearOverride(ctx)
	}
	uri, want, target := v.server.Spec.SystemURI, v.want(), v.BootTarget
	return v.once(ctx, v.jobID(jobOn), "power on", func(ctx context.Context, bmc redfish.BMC) error {
		if err := bmc.SetBootOnce(ctx, uri, want, target); err != nil {
			return fmt.Errorf("boot override: %w", err)
		}
		return bmc.Reset(ctx, uri, want, redfish.ActionOn)
	})
}

// clearOverride takes away an override that outlived the boot it was for, so that it never hijacks the workload's own
// reboot. It waits until the machine is known to have booted, because firmware reads the override only at the end of its
// self test. Its failure holds nothing back.
func (v *visit) clearOverride(ctx context.Context) loop.Progress {
	if !v.facts.BMC.OverrideSet {
		return loop.Holds()
	}
	if left := v.untilBooted(); left > 0 {
		v.wakeIn(left)
		return loop.Holds()
	}
	id := v.jobID("clear-override")
	job, known := v.Desk.Known(v.server.Name, id)
	if known && job.State != hardware.JobRunning {
		if job.State == hardware.JobFailed {
			v.note(true, "BootOverrideStays", "the boot override could not be cleared: "+words(job.Err))
		}
		if left := overrideRetry - v.now.Sub(job.EndedAt); left > 0 {
			v.wakeIn(left)
			return loop.Holds()
		}
		v.Desk.Repeat(v.server.Name, id)
		known = false
	}
	if !known {
		if p, ok := v.confirm(ctx); !ok {
			return p
		}
		uri, want := v.server.Spec.SystemURI, v.want()
		v.Desk.Do(v.server.Name, v.target, id, func(ctx context.Context, bmc redfish.BMC) error { return bmc.ClearBoot(ctx, uri, want) })
	}
	return loop.Holds()
}

// untilBooted is how long a machine that is on may still be in its self test: 0 once it reported from what it booted.
func (v *visit) untilBooted() time.Duration {
	if v.facts.Probe.Entry == v.facts.Lifecycle.Entry {
		return 0
	}
	since := v.server.Status.Lifecycle.EnteredAt.Time
	if job, known := v.Desk.Known(v.server.Name, v.jobID(jobOn)); known && job.EndedAt.After(since) {
		since = job.EndedAt
	} else if v.startedAt.After(since) {
		since = v.startedAt // a former manager may have switched it on a moment ago
	}
	if v.boot != nil {
		up := meta.FindStatusCondition(v.boot.Status.Conditions, v1alpha1.ConditionBootStateReceived)
		if up != nil && up.Status == metav1.ConditionTrue && up.LastTransitionTime.After(since) {
			return 0
		}
	}
	return max(0, v.BootGrace-v.now.Sub(since))
}

// powerOff makes the machine stop: first by asking its operating system, for as long as graceful says, then by force.
func (v *visit) powerOff(ctx context.Context, effect engine.Effect) loop.Progress {
	graceful := effect.Param("graceful").Duration()
	force := graceful == 0 || effect.Param("thenForce").Bool()
	return v.stop(ctx, graceful, force)
}

func (v *visit) stop(ctx context.Context, graceful time.Duration, force bool) loop.Progress {
	forced, asked := v.jobID(jobForceOff), v.jobID(jobShutdown)
	if v.reading.Reachable() && v.reading.Value.Power == redfish.PowerOff {
		v.Desk.Repeat(v.server.Name, forced, asked, v.jobID(jobOn)) // the next time each has its whole time again
		return loop.Holds()
	}
	if graceful > 0 {
		if _, known := v.Desk.Known(v.server.Name, forced); !known {
			if p, wait := v.shutDown(ctx, asked, graceful, force); wait {
				return p
			}
		}
	}
	if p, ok := v.powerKnown(); !ok {
		return p
	}
	if v.reading.Value.Power == redfish.PowerOff {
		return loop.Holds()
	}
	return v.once(ctx, forced, "forced power-off", v.reset(redfish.ActionForceOff))
}

// shutDown asks the operating system and says whether to wait for it. A BMC that cannot ask is not waited for.
func (v *visit) shutDown(ctx context.Context, id string, graceful time.Duration, force bool) (loop.Progress, bool) {
	job, known := v.Desk.Known(v.server.Name, id)
	if !known {
		if p, ok := v.powerKnown(); !ok {
			return p, true
		}
		if v.reading.Value.Power == redfish.PowerOff {
			return loop.Holds(), true
		}
		if p, ok := v.confirm(ctx); !ok {
			return p, true
		}
		v.Desk.Do(v.server.Name, v.target, id, v.reset(redfish.ActionGracefulShutdown))
		return loop.Waiting(waitsForPower, "the operating system to shut down", 0), true
	}
	if job.State == hardware.JobRunning {
		return loop.Waiting(waitsForPower, "the operating system to shut down", 0), true
	}
	left := graceful - v.now.Sub(job.EndedAt)
	if job.State == hardware.JobFailed && !redfish.MayHaveHappened(job.Err) {
		left = 0
	}
	if left > 0 {
		what := "the operating system to shut down"
		return loop.Waiting(waitsForPower, what, min(left, v.pollInterval())), true
	}
	if !force {
		return loop.Failing(requestFailed, "the operating system did not shut down in time and the policy does not allow force", v.PowerGrace), true
	}
	return loop.Progress{}, false
}

// powerAsClaimed follows the bound claim.
func (v *visit) powerAsClaimed(ctx context.Context) loop.Progress {
	if v.claim.Spec.Power == v1alpha1.PowerOn {
		return v.powerOn(ctx)
	}
	return v.stop(ctx, shutdownGrace, true)
}

// once asks the BMC for something and waits until it shows. What the BMC accepted is not asked for again before
// PowerGrace has passed, and then only after a reading that still shows the old state.
func (v *visit) once(ctx context.Context, id, what string, run func(context.Context, redfish.BMC) error) loop.Progress {
	job, known := v.Desk.Known(v.server.Name, id)
	if known && job.State != hardware.JobRunning {
		waited := v.now.Sub(job.EndedAt)
		switch {
		case job.State == hardware.JobFailed && !redfish.MayHaveHappened(job.Err):
			if waited < retryAfter(job.Err) {
				return loop.Failing(requestFailed, what+": "+words(job.Err), retryAfter(job.Err)-waited)
			}
		case waited < v.PowerGrace:
			return loop.Waiting(waitsForPower, what+" to show", min(v.pollInterval(), v.PowerGrace-waited))
		}
		v.Desk.Repeat(v.server.Name, id)
		known = false
	}
	if !known {
		if p, ok := v.confirm(ctx); !ok {
			return p
		}
		v.Desk.Do(v.server.Name, v.target, id, run)
	}
	return loop.Waiting(waitsForPower, what+" to be accepted", 0)
}

// retryAfter is how long to leave a BMC alone that refused a request: as long as it asks, and never less than a while.
func retryAfter(err error) time.Duration {
	const least = 15 * time.Second
	var refused *redfish.ResponseError
	if errors.As(err, &refused) {
		return max(least, refused.RetryAfter)
	}
	return least
}

// words says what went wrong with a BMC, alike for as long as it is the same.
func words(err error) string {
	message, _ := access.Describe(err)
	return message
}

func (v *visit) reset(action redfish.PowerAction) func(context.Context, redfish.BMC) error {
	uri, want := v.server.Spec.SystemURI, v.want()
	return func(ctx context.Context, bmc redfish.BMC) error { return bmc.Reset(ctx, uri, want, action) }
}

// jobID names a request by the entry that asks for it, so that a request of a former entry is never taken for this one.
func (v *visit) jobID(what string) string {
	return entryText(v.server.Status.Lifecycle.Entry) + "/" + what
}

var resetActions = map[string]redfish.PowerAction{
	v1alpha1.OperationGracefulRestartServer: redfish.ActionGracefulRestart,
	v1alpha1.OperationHardRestartServer:     redfish.ActionForceRestart,
	v1alpha1.OperationPowerCycleServer:      redfish.ActionPowerCycle,
	v1alpha1.OperationForceOffServer:        redfish.ActionForceOff,
	v1alpha1.OperationForceOnServer:         redfish.ActionOn,
}

func (v *visit) beginReset(op *v1alpha1.OperationStatus) loop.Progress {
	action, ok := resetActions[op.Name]
	if !ok {
		v.finish(v1alpha1.OperationFailed, "it asks for no reset")
		return loop.Holds()
	}
	v.Desk.Do(v.server.Name, v.target, op.ID, v.reset(action))
	return loop.Waiting("OperationRunning", op.Name+" to be accepted", 0)
}

func (v *visit) endReset(op *v1alpha1.OperationStatus, job hardware.Job) loop.Progress {
	switch job.State {
	case hardware.JobRunning:
		return loop.Waiting("OperationRunning", op.Name+" to be accepted", 0)
	case hardware.JobFailed:
		v.finish(v1alpha1.OperationFailed, loop.Shortened(words(job.Err), loop.MaxMessage))
	default:
		v.finish(v1alpha1.OperationSucceeded, "accepted by the BMC")
	}
	return loop.Holds()
}
