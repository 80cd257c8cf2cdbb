// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// settingShell makes the settings of a machine that hold nothing back, for one effect.
type settingShell struct{ *scope }

// refused tells of a setting that the BMC refuses.
func (v settingShell) refused(reason, what string, job power.Job) {
	if !power.NotAsked(job.Err) {
		v.out.notes = append(v.out.notes, operations.Note{Reason: reason, Message: what + job.Words})
	}
}

// repeats says that a setting which failed may be asked for again, and reports the failure then.
func (v settingShell) repeats(id string, job power.Job, reason, what string) bool {
	if left := job.SettingPause() - v.now.Sub(job.EndedAt); left > 0 {
		v.wakeIn(left)
		return false
	}
	v.refused(reason, what, job)
	v.Cache.Repeat(v.server.Name, id)
	return true
}

// ask asks the BMC for a setting.
func (v settingShell) ask(id string, run call) {
	v.Cache.Do(v.server.Name, v.target, id, v.guarded(run, fleet.Setting))
}

// wantedBootOrder is the devices of spec.bootOrder, lowest priority first.
func (v settingShell) wantedBootOrder() []string {
	order := slices.Clone(v.server.Spec.BootOrder)
	slices.SortStableFunc(order, func(a, b v1alpha1.BootOrder) int { return int(a.Priority - b.Priority) })
	var devices []string
	for _, o := range order {
		devices = append(devices, o.Device)
	}
	return devices
}

// applyBootOrder asserts spec.bootOrder.
func (v settingShell) applyBootOrder(ctx context.Context) loop.Progress {
	devices := v.wantedBootOrder()
	if len(devices) == 0 || !v.reading.Reachable() {
		return loop.Holds()
	}
	shown := v.reading.Value.BootOrder
	if len(shown) >= len(devices) && slices.Equal(shown[:len(devices)], devices) {
		return loop.Holds()
	}
	if left := v.requested().UnsettledFor(redfish.PowerOn); left > 0 {
		v.wakeIn(left)
		return loop.Holds() // the machine may be booting, whatever the BMC shows
	}
	id := jobID(v.server, "boot-order-"+strings.Join(devices, ","))
	switch job := v.job(id); {
	case job.Running:
		return loop.Waiting("WaitsForBootOrder", "the boot order to be accepted", 0)
	case job.Succeeded():
		return loop.Holds() // the BMC accepted it; some show it only after the next boot
	case job.Known && !v.repeats(id, job, "BootOrderFailed", "the boot order could not be set: "):
		return loop.Holds() // the machine boots all the same
	}
	if v.Cache.Busy(v.server.Name) {
		return loop.Waiting("WaitsForBootOrder", "the BMC to answer a request, before the boot order", 0)
	}
	if p, ok := v.powerKnown(); !ok {
		return p
	}
	if p, ok := v.permitted(ctx, fleet.Setting); !ok {
		return p
	}
	v.ask(id, func(ctx context.Context, bmc redfish.BMC, uri string, want redfish.Identity) error {
		return bmc.SetBootOrder(ctx, uri, want, devices)
	})
	return loop.Waiting("WaitsForBootOrder", "the boot order to be accepted", 0)
}

// locate shows what spec.indicatorLED asks, or what the state asks where that is silent. A light that a state switched on
// is known by a mark, so that it is switched off where neither asks, and one that somebody switched on by hand is not. In a
// state without this effect the light stays as it is. A light that cannot be set holds nothing back.
func (v settingShell) locate(ctx context.Context, effect engine.Effect) loop.Progress {
	wanted, byState := v.wantedLight(effect)
	return v.show(ctx, wanted, byState, "led-")
}

// show switches the light, unless wanted is empty. What names the request for one wish.
func (v settingShell) show(ctx context.Context, wanted redfish.IndicatorLED, byState bool, what string) loop.Progress {
	shown := v.reading.Value.LED
	if !v.reading.Reachable() || shown == redfish.LEDUnknown || shown == "" {
		return loop.Holds()
	}
	v.forgetLight(byState, shown)
	if wanted == "" || shown == wanted {
		return loop.Holds()
	}
	id := jobID(v.server, what+string(wanted))
	job := v.job(id)
	if job.Known && (job.Err == nil || !v.repeats(id, job, "LocatorFailed", "the locator light could not be set: ")) {
		return loop.Holds()
	}
	if p, ok := v.permitted(ctx, fleet.Setting); !ok {
		return p
	}
	if byState && !v.located() {
		return v.marked(policies.MarkLocated) // stored first, so that nobody has to guess whose light it is
	}
	v.ask(id, func(ctx context.Context, bmc redfish.BMC, uri string, want redfish.Identity) error {
		return bmc.SetLED(ctx, uri, want, wanted)
	})
	return loop.Holds()
}

// wantedLight is the light to show; empty for whichever there is. byState says that it is the state that asks for a light.
func (v settingShell) wantedLight(effect engine.Effect) (wanted redfish.IndicatorLED, byState bool) {
	wanted = redfish.IndicatorLED(v.server.Spec.IndicatorLED)
	if wanted != "" && wanted != redfish.LEDUnknown {
		return wanted, false
	}
	wanted = redfish.IndicatorLED(effect.Param("unlessAsked").Text())
	if wanted == "" && v.located() {
		return redfish.LEDOff, false
	}
	return wanted, wanted != "" && wanted != redfish.LEDOff
}

// forgetLight takes the mark away once the light that a state asked for is somebody else's to want, or is off and no state
// asks for it any more. "Off" that was read before the last request was answered says nothing of what that request did.
func (v settingShell) forgetLight(byState bool, shown redfish.IndicatorLED) {
	asked := v.server.Spec.IndicatorLED != "" && redfish.IndicatorLED(v.server.Spec.IndicatorLED) != redfish.LEDUnknown
	off := shown == redfish.LEDOff && !v.Cache.Busy(v.server.Name) && !v.reading.Begun.Before(v.Cache.LastJob(v.server.Name))
	if v.located() && (asked || (!byState && off)) {
		l := v.server.Status.Lifecycle
		l.Marks = engine.Decision{Clears: []string{policies.MarkLocated}}.MarksAfter(l.Marks)
	}
}

// located says that a state had the light switched on.
func (v settingShell) located() bool {
	l := v.server.Status.Lifecycle
	return l != nil && slices.Contains(l.Marks, policies.MarkLocated)
}
