// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/hardware"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/redfish"
)

// settingShell makes the settings of a machine that hold nothing back, for one effect.
type settingShell struct{ *scope }

// settingRetry is the time between two attempts to make a setting that a BMC refuses and that holds nothing back.
const settingRetry = 10 * time.Minute

// againAfter is how long to leave a setting alone that failed: not long where the BMC was not even asked.
func againAfter(err error) time.Duration {
	if power.NotAsked(err) {
		return power.RetryAfter(err)
	}
	return settingRetry
}

// refused tells of a setting that the BMC refuses.
func (v settingShell) refused(reason, what string, err error) {
	if !power.NotAsked(err) {
		v.note(reason, what+words(err))
	}
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
	uri, want := v.server.Spec.SystemURI, v.want()
	id := jobID(v.server, "boot-order-"+strings.Join(devices, ","))
	job, known := v.Cache.Known(v.server.Name, id)
	switch {
	case known && job.State == hardware.JobRunning:
		return loop.Waiting("WaitsForBootOrder", "the boot order to be accepted", 0)
	case known && job.State == hardware.JobSucceeded:
		return loop.Holds() // the BMC accepted it; some show it only after the next boot
	case known:
		if left := againAfter(job.Err) - v.now.Sub(job.EndedAt); left > 0 {
			v.wakeIn(left)
			return loop.Holds() // the machine boots all the same
		}
		v.refused("BootOrderFailed", "the boot order could not be set: ", job.Err)
		v.Cache.Repeat(v.server.Name, id)
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
	v.Cache.Do(v.server.Name, v.target, id,
		v.guarded(func(ctx context.Context, bmc redfish.BMC) error { return bmc.SetBootOrder(ctx, uri, want, devices) }, fleet.Setting))
	return loop.Waiting("WaitsForBootOrder", "the boot order to be accepted", 0)
}
