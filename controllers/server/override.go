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
	"github.com/metalaw/metalaw/redfish"
)

// overrideRetry is the time between two attempts to clear a boot override that stays.
const overrideRetry = time.Minute

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
		again := overrideRetry
		if job.State == hardware.JobFailed {
			v.refused("BootOverrideStays", "the boot override could not be cleared: ", job.Err)
			again = min(again, againAfter(job.Err))
		}
		if left := again - v.now.Sub(job.EndedAt); left > 0 {
			v.wakeIn(left)
			return loop.Holds()
		}
		v.Desk.Repeat(v.server.Name, id)
		known = false
	}
	if !known {
		if p, ok := v.permitted(ctx, fleet.Setting); !ok {
			return p
		}
		uri, want := v.server.Spec.SystemURI, v.want()
		v.Desk.Do(v.server.Name, v.target, id,
			v.guarded(func(ctx context.Context, bmc redfish.BMC) error { return bmc.ClearBoot(ctx, uri, want) }, fleet.Setting))
	}
	return loop.Holds()
}

// untilBooted is how long a machine that is on may still be in its self test: 0 once it reported from what it booted.
func (v *visit) untilBooted() time.Duration {
	if v.facts.Probe.Entry == v.facts.Lifecycle.Entry {
		return 0
	}
	l := v.server.Status.Lifecycle
	since := v.notAhead(entryRecord, entryText(l.Entry), l.EnteredAt.Time)
	if l.Request != nil && l.Request.Action == v1alpha1.PowerActionOn {
		since = later(since, v.recordedAt(l.Request))
	}
	if op := v.server.Status.Operation; op != nil && op.FinishedAt != nil && resetActions[op.Name] != "" {
		since = later(since, v.notAhead(operationRecord, op.ID, op.FinishedAt.Time))
	}
	if v.boot != nil {
		up := meta.FindStatusCondition(v.boot.Status.Conditions, v1alpha1.ConditionBootStateReceived)
		if up != nil && up.Status == metav1.ConditionTrue && up.LastTransitionTime.After(since) {
			return 0
		}
	}
	return max(0, v.BootGrace-v.now.Sub(since))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
