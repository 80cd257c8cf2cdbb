// SPDX-License-Identifier: Apache-2.0

// Package boot decides which boot configuration and which boot override a machine is to have. It writes nothing itself.
package boot

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/redfish"
)

// overrideRetry is the time between two attempts to clear a boot override that stays.
const overrideRetry = time.Minute

// OverrideInput is everything that a decision about a boot override depends on.
type OverrideInput struct {
	// Set says that the BMC shows an override.
	Set bool
	// Reported says that the machine has reported, in this entry, from what it booted.
	Reported bool
	// Since is when the machine was last switched on, restarted, or came into its entry.
	Since time.Time
	// Boot is the boot configuration in force; nil where there is none.
	Boot *v1alpha1.ServerBootConfiguration
	// Started and Testing say what the BMC shows of this boot: its operating system, or its self test.
	Started, Testing bool
	// FirstWord is how long after its power-on a machine may take to use its override, where nothing proves that it did.
	FirstWord time.Duration
	// Job is the last call that cleared it.
	Job power.Job
	Now time.Time
}

// OverrideOutput is what is due about a boot override.
type OverrideOutput struct {
	// Clear says that the override is to be cleared now, and Tell that the call before failed, which is worth a warning.
	Clear, Tell bool
	// Again is when to look again; 0 where nothing is to be done.
	Again time.Duration
}

// Override takes away an override that outlived the boot it was for, so that it never hijacks the workload's own reboot. It
// waits until the machine is known to have booted, because firmware reads the override only at the end of its self test.
func Override(in OverrideInput) OverrideOutput {
	if !in.Set {
		return OverrideOutput{}
	}
	if left := in.untilBooted(); left > 0 {
		return OverrideOutput{Again: left}
	}
	if !in.Job.Known || in.Job.Running {
		return OverrideOutput{Clear: !in.Job.Known}
	}
	again, tell := overrideRetry, in.Job.Err != nil
	if tell {
		again = min(again, in.Job.SettingPause())
	}
	if left := again - in.Now.Sub(in.Job.EndedAt); left > 0 {
		return OverrideOutput{Again: left, Tell: tell}
	}
	return OverrideOutput{Clear: true, Tell: tell}
}

// untilBooted is how long a machine that is on may still be in its self test: 0 once it reported from what it booted.
func (in OverrideInput) untilBooted() time.Duration {
	if in.Reported || in.Started {
		return 0
	}
	if in.Boot != nil {
		up := meta.FindStatusCondition(in.Boot.Status.Conditions, v1alpha1.ConditionBootStateReceived)
		if up != nil && up.Status == metav1.ConditionTrue && up.LastTransitionTime.After(in.Since) {
			return 0
		}
	}
	wait := in.FirstWord
	if in.Testing {
		wait *= 2 // a self test that is surely of this boot is given as long again, and no longer: some BMCs show it for ever
	}
	return max(0, wait-in.Now.Sub(in.Since))
}

// Watch follows the boot progress of one boot. A BMC may go on showing that of the boot before.
type Watch struct {
	// Boot names the boot.
	Boot   string
	before redfish.BootProgress
	// left says that something else was seen since than the operating system of the boot before.
	left bool
	// moved says that something else was seen since than at first.
	moved bool
}

// Look takes in a reading of a boot, and says whether it has come to its operating system, or is in its self test. What shows
// of a boot at first may be of the one before.
func (w Watch) Look(boot string, p redfish.BootProgress) (after Watch, started, testing bool) {
	if w.Boot != boot {
		return Watch{Boot: boot, before: p, left: p.LastState != "" && !p.StartedOS()}, false, false
	}
	w.moved = w.moved || p != w.before
	if !p.StartedOS() {
		w.left = w.left || p.LastState != ""
		return w, false, w.moved && p.InSelfTest()
	}
	return w, w.left || p.LastStateTime != "" && p.LastStateTime != w.before.LastStateTime, false
}

// Source decides from what a machine is switched on. Where its BMC shows no boot override it goes by its boot order, if the
// policy allows that, and never for a wipe: the boot order may lead to the disks that are to be erased. refused says why not.
func Source(target string, missing bool, purpose string, allowed bool) (source, refused string) {
	switch {
	case !missing:
		return target, ""
	case purpose == v1alpha1.BootPurposeWipe:
		return "", "The BMC shows no boot override, so the machine cannot be booted into the wipe for sure. " +
			"It stays off, and its disks stay as they are."
	case !allowed:
		return "", "The BMC shows no boot override, so the machine stays off. If the network is first in its boot order, " +
			"set boot.withoutOverride: true in the bundle."
	}
	return redfish.TargetBootOrder, ""
}

// WithoutOverride says what follows from a BMC that shows no boot override.
func WithoutOverride(allowed bool) string {
	if allowed {
		return "The BMC shows no boot override. The machine boots by its boot order, and is never wiped: its wipe fails. " +
			"To offer it after a claim, erase its disks by hand and force it to Available."
	}
	_, why := Source("", true, "", false)
	return why
}
