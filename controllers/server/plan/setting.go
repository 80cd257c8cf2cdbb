// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/call"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// refused tells of a setting that the BMC refuses.
func refused(d *draft, reason, what string, job power.Job) {
	if !power.NotAsked(job.Err) {
		d.tell(operations.Note{Reason: reason, Message: what + job.Words})
	}
}

// repeats says that a setting which failed may be asked for again, and reports the failure then.
func repeats(d *draft, id string, job power.Job, reason, what string) bool {
	if left := job.SettingPause() - d.Now.Sub(job.EndedAt); left > 0 {
		d.wake(left)
		return false
	}
	refused(d, reason, what, job)
	d.forget(id)
	return true
}

// wantedBootOrder is the devices of spec.bootOrder, lowest priority first.
func wantedBootOrder(s *v1alpha1.Server) []string {
	order := slices.Clone(s.Spec.BootOrder)
	slices.SortStableFunc(order, func(a, b v1alpha1.BootOrder) int { return int(a.Priority - b.Priority) })
	var devices []string
	for _, o := range order {
		devices = append(devices, o.Device)
	}
	return devices
}

// applyBootOrder asserts spec.bootOrder.
func applyBootOrder(d *draft, _ engine.Effect) loop.Progress {
	devices := wantedBootOrder(d.Server)
	if len(devices) == 0 || !d.BMC.Reachable() {
		return loop.Holds()
	}
	shown := d.BMC.System.BootOrder
	if len(shown) >= len(devices) && slices.Equal(shown[:len(devices)], devices) {
		return loop.Holds()
	}
	if left := d.Requested().UnsettledFor(redfish.PowerOn); left > 0 {
		d.wake(left)
		return loop.Holds() // the machine may be booting, also if the BMC does not show it
	}
	id := d.jobID("boot-order-" + strings.Join(devices, ","))
	switch job := d.BMC.Jobs[id]; {
	case job.Running:
		return loop.Waiting("WaitsForBootOrder", "the boot order to be accepted", 0)
	case job.Succeeded():
		return loop.Holds() // the BMC accepted it; some show it only after the next boot
	case job.Known && !repeats(d, id, job, "BootOrderFailed", "the boot order could not be set: "):
		return loop.Holds() // the machine boots all the same
	}
	if d.BMC.Busy() {
		return loop.Waiting("WaitsForBootOrder", "the BMC to answer a request, before the boot order", 0)
	}
	if p, ok := d.powerKnown(); !ok {
		return p
	}
	d.permit(fleet.Setting)
	d.ask(Ask{ID: id, Call: call.BootOrder{Devices: devices}, Actions: []fleet.Action{fleet.Setting}})
	return loop.Waiting("WaitsForBootOrder", "the boot order to be accepted", 0)
}

// locate shows what spec.indicatorLED asks, or what the state asks if that is silent. A light that a state switched on is
// known by a mark, so that it goes out once neither asks, and a light that a person switched on stays. In a state without
// this effect the light stays as it is. A light that cannot be set holds nothing back.
func locate(d *draft, effect engine.Effect) loop.Progress {
	wanted, byState := d.wantedLight(effect)
	return showLight(d, wanted, byState, "led-")
}

// showLight switches the light, unless wanted is empty. what names the request for one wish.
func showLight(d *draft, wanted redfish.IndicatorLED, byState bool, what string) loop.Progress {
	shown := d.BMC.System.LED
	if !d.BMC.Reachable() || shown == redfish.LEDUnknown || shown == "" {
		return loop.Holds()
	}
	forgetLight(d, byState, shown)
	if wanted == "" || shown == wanted {
		return loop.Holds()
	}
	id := d.jobID(what + string(wanted))
	job := d.BMC.Jobs[id]
	if job.Known && (job.Err == nil || !repeats(d, id, job, "LocatorFailed", "the locator light could not be set: ")) {
		return loop.Holds()
	}
	d.permit(fleet.Setting)
	if byState && !d.marked(policies.MarkLocated) {
		return d.addMark(policies.MarkLocated) // stored first, so that it is known whose light it is
	}
	d.ask(Ask{ID: id, Call: call.Light{LED: wanted}, Actions: []fleet.Action{fleet.Setting}})
	return loop.Holds()
}

// wantedLight is the light to show; empty for whichever there is. byState says that it is the state that asks for a light.
func (s *Seen) wantedLight(effect engine.Effect) (wanted redfish.IndicatorLED, byState bool) {
	if wanted = askedLight(s.Server); wanted != "" {
		return wanted, false
	}
	wanted = redfish.IndicatorLED(effect.Param("unlessAsked").Text())
	if wanted == "" && s.marked(policies.MarkLocated) {
		return redfish.LEDOff, false
	}
	return wanted, wanted != "" && wanted != redfish.LEDOff
}

// askedLight is the light that spec.indicatorLED asks for; empty if it asks for none.
func askedLight(s *v1alpha1.Server) redfish.IndicatorLED {
	if led := redfish.IndicatorLED(s.Spec.IndicatorLED); led != redfish.LEDUnknown {
		return led
	}
	return ""
}

// forgetLight takes the mark away once spec.indicatorLED asks for a light, or the light is off and no state asks for it any
// more. "Off" that was read before the last request was answered says nothing of what that request did.
func forgetLight(d *draft, byState bool, shown redfish.IndicatorLED) {
	off := shown == redfish.LEDOff && !d.BMC.Busy() && !d.BMC.Begun.Before(d.BMC.LastJob)
	if d.marked(policies.MarkLocated) && (askedLight(d.Server) != "" || !byState && off) {
		d.set(func(s *v1alpha1.Server) {
			l := s.Status.Lifecycle
			l.Marks = engine.Decision{Clears: []string{policies.MarkLocated}}.MarksAfter(l.Marks)
		})
	}
}
