// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/redfish"
)

// record brings the status up to date.
func (v *scope) record() {
	controllerutil.AddFinalizer(v.bmc, v1alpha1.FinalizerBMC)
	if v.targetErr == nil && !v.reading.Tried {
		v.recordReset() // what is recorded stands until the BMC was asked
		return
	}
	status := &v.bmc.Status
	status.ObservedGeneration = v.bmc.Generation
	status.IP, status.MACAddress = v.location.IP, v.location.MACAddress
	v.recordReady()
	v.recordUnreachable()
	v.recordCertificate()
	if v.usable() {
		v.recordManager(v.reading.Value.Manager)
		accepted, reason, message := v.plan.verdict()
		v.set(v1alpha1.ConditionSystemsAccepted, accepted, reason, message)
	}
	v.recordReset()
}

// recordReady says whether the BMC can be used. Where it was not even asked, what was said before says more.
func (v *scope) recordReady() {
	status := &v.bmc.Status
	if v.usable() {
		status.State = v1alpha1.BMCStateEnabled
		v.set(v1alpha1.ConditionReady, true, v1alpha1.ReasonConnected,
			fmt.Sprintf("the BMC at %s answers and accepts the credentials", v.location.IP))
		return
	}
	status.State = v1alpha1.BMCStateError
	reason, message, news := v.trouble()
	was := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if !news && was != nil && was.Status == metav1.ConditionFalse && was.Reason == reason {
		message = was.Message
	}
	v.set(v1alpha1.ConditionReady, false, reason, message)
}

func (v *scope) trouble() (reason, message string, news bool) {
	switch {
	case v.targetErr != nil:
		return v.targetErr.Reason, v.targetErr.Message, true
	case v.reading.Err != nil:
		message, news = access.Describe(v.reading.Err)
		return redfish.Reason(v.reading.Err), message + access.Retry(v.reading.Err, v.bmc.Name) + v.certificateAdvice(), news
	}
	return v1alpha1.ReasonUnknownError, v.mismatch(), true
}

// mismatch says that another BMC than the one of spec.bmcUUID answers; empty where that is not so, or not said.
func (v *scope) mismatch() string {
	want, got := v.bmc.Spec.BMCUUID, v.reading.Value.Manager.UUID
	if want == "" || got == "" || isSystem(want, got) {
		return ""
	}
	return fmt.Sprintf("the BMC at %s has the UUID %s and not %s (spec.bmcUUID); check its address; nothing is done to it", v.location.IP, got, want)
}

// usable says that the BMC answered, and is the one that is meant.
func (v *scope) usable() bool {
	return v.targetErr == nil && v.reading.Reachable() && v.mismatch() == ""
}

func (v *scope) recordManager(m redfish.ManagerSnapshot) {
	status := &v.bmc.Status
	status.Manufacturer, status.Model, status.SKU = m.Manufacturer, m.Model, m.SKU
	status.SerialNumber, status.FirmwareVersion = m.SerialNumber, m.FirmwareVersion
	status.PowerState = v1alpha1.BMCPowerState(m.Power)
	status.LastResetTime = nil
	if !m.LastResetTime.IsZero() {
		at := metav1.NewTime(m.LastResetTime.Truncate(time.Second))
		status.LastResetTime = &at
	}
}

// recordReset ends a reset once the BMC answers again. A BMC may still answer for a moment after it accepted one. What
// became of a reset that another process recorded is not known.
func (v *scope) recordReset() {
	if v.askedReset != nil {
		v.setReset(true, v1alpha1.ReasonUserRequested, v.askedReset.message, v.askedReset.at)
	}
	if v.failedReset != nil {
		v.setReset(false, v1alpha1.ReasonResetFailed, v.failedReset.Error(), v.now)
	}
	reset := v.reset()
	if reset == nil {
		return
	}
	if v.operation() != "" || !v.reading.Reachable() || !v.reading.At.After(reset.LastTransitionTime.Add(v.ResetSettle)) {
		v.bmc.Status.State = v1alpha1.BMCStatePending
		return
	}
	if _, known := v.sent(); !known {
		v.setReset(false, v1alpha1.ReasonInterrupted, "the manager that recorded the reset ended, so that nobody knows whether the BMC was "+
			"asked; it answers; compare status.lastResetTime, and ask again if it did not restart", v.now)
		return
	}
	v.setReset(false, v1alpha1.ReasonResetComplete, "the BMC answers after its reset", v.now)
}

// reset is the condition of a reset under way, or nil.
func (v *scope) reset() *metav1.Condition {
	c := meta.FindStatusCondition(v.bmc.Status.Conditions, v1alpha1.ConditionReset)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return c
}

func (v *scope) setReset(holds bool, reason, message string, at time.Time) {
	state := metav1.ConditionFalse
	if holds {
		state = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&v.bmc.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReset, Status: state, Reason: reason, Message: message,
		ObservedGeneration: v.bmc.Generation, LastTransitionTime: metav1.NewTime(at.Truncate(time.Second)),
	})
}

func (v *scope) set(kind string, holds bool, reason, message string) {
	state := metav1.ConditionFalse
	if holds {
		state = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&v.bmc.Status.Conditions, metav1.Condition{
		Type: kind, Status: state, Reason: reason, Message: loop.Shortened(message, loop.MaxMessage), ObservedGeneration: v.bmc.Generation,
	})
}
