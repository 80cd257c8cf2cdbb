// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/redfish"
)

// overrideRetry is the time between two attempts to clear a boot override that stays.
const overrideRetry = time.Minute

// clearOverride takes away an override that outlived the boot it was for, so that it never hijacks the workload's own
// reboot. It waits until the machine is known to have booted, because firmware reads the override only at the end of its
// self test. Its failure holds nothing back.
func (v *scope) clearOverride(ctx context.Context) loop.Progress {
	if !v.facts.BMC.OverrideSet {
		return loop.Holds()
	}
	if left := v.untilBooted(); left > 0 {
		v.wakeIn(left)
		return loop.Holds()
	}
	id := v.jobID("clear-override")
	job, known := v.Cache.Known(v.server.Name, id)
	if known && job.State != hardware.JobRunning {
		again := overrideRetry
		if job.State == hardware.JobFailed {
			v.refused("BootOverrideStays", "the boot override could not be cleared: ", job.Err)
			again = min(again, againAfter(job.Err))
		}
		if left := again - v.now.Sub(job.EndedAt); left > 0 {
			v.wakeIn(left)
			return loop.Holds()
		}
		v.Cache.Repeat(v.server.Name, id)
		known = false
	}
	if !known {
		if p, ok := v.permitted(ctx, fleet.Setting); !ok {
			return p
		}
		uri, want := v.server.Spec.SystemURI, v.want()
		v.Cache.Do(v.server.Name, v.target, id,
			v.guarded(func(ctx context.Context, bmc redfish.BMC) error { return bmc.ClearBoot(ctx, uri, want) }, fleet.Setting))
	}
	return loop.Holds()
}

// untilBooted is how long a machine that is on may still be in its self test: 0 once it reported from what it booted.
func (v *scope) untilBooted() time.Duration {
	if v.facts.Probe.Entry == v.facts.Lifecycle.Entry {
		return 0
	}
	l := v.server.Status.Lifecycle
	since := v.notAhead(entryRecord, entryText(l.Entry), l.EnteredAt.Time)
	if isOn(l.Request) {
		since = later(since, v.requested().RecordedAt)
	}
	if op := v.server.Status.Operation; operations.EndedReset(op) {
		since = later(since, v.notAhead(operationRecord, op.ID, op.FinishedAt.Time))
	}
	if v.boot != nil {
		up := meta.FindStatusCondition(v.boot.Status.Conditions, v1alpha1.ConditionBootStateReceived)
		if up != nil && up.Status == metav1.ConditionTrue && up.LastTransitionTime.After(since) {
			return 0
		}
	}
	started, testing := v.bootShown()
	if started {
		return 0
	}
	wait := v.firstWord()
	if testing {
		wait *= 2 // a self test that is surely of this boot is given as long again, and no longer: some BMCs show it for ever
	}
	return max(0, wait-v.now.Sub(since))
}

// bootSettings is how the policy has this machine booted.
func (v *scope) bootSettings() bundle.BootOf {
	return v.settings().Boot.For(v.server.Status.Manufacturer, v.server.Status.Model)
}

// firstWord is how long after its power-on a machine may take to use its override, where nothing proves that it did.
func (v *scope) firstWord() time.Duration {
	if v.BootGrace > 0 {
		return v.BootGrace
	}
	return v.bootSettings().FirstWord
}

// bootWatch follows the boot progress of one boot. A BMC may go on showing that of the boot before.
type bootWatch struct {
	boot   string
	before redfish.BootProgress
	// left says that something else was seen since than the operating system of the boot before.
	left bool
	// moved says that something else was seen since than at first.
	moved bool
}

// look takes in a reading, and says whether this boot has come to its operating system, or is in its self test.
func (w bootWatch) look(p redfish.BootProgress) (after bootWatch, started, testing bool) {
	w.moved = w.moved || p != w.before
	if !p.StartedOS() {
		w.left = w.left || p.LastState != ""
		return w, false, w.moved && p.InSelfTest()
	}
	return w, w.left || p.LastStateTime != "" && p.LastStateTime != w.before.LastStateTime, false
}

// bootShown says whether the BMC shows this boot to have used its override, or to be in the self test before that.
func (v *scope) bootShown() (started, testing bool) {
	if !v.shows(redfish.PowerOn) {
		return false, false
	}
	return v.memory.watchBoot(v.server.Name, v.bootID(), v.reading.Value.BootProgress)
}

// watchBoot begins to follow a boot that is about to be asked for.
func (v *scope) watchBoot() {
	v.memory.watchBoot(v.server.Name, v.bootID(), v.reading.Value.BootProgress)
}

// bootID names the last boot that was asked for.
func (v *scope) bootID() string {
	id := entryText(v.server.Status.Lifecycle.Entry)
	if request := v.server.Status.Lifecycle.Request; isOn(request) {
		id = power.RequestID(request)
	}
	if op := v.server.Status.Operation; operations.EndedReset(op) {
		id += "/" + op.ID
	}
	return id
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
