// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/controllers/server/recheck"
	"github.com/metalaw/metalaw/engine"
	windows "github.com/metalaw/metalaw/engine/maintenance"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// maintenanceShell does what the maintenance asks for that the manager granted the server to.
type maintenanceShell struct{ *scope }

// served says that the server is in the hands of a maintenance that the manager granted.
func (v maintenanceShell) served() bool {
	return v.server.Status.State == v1alpha1.StateMaintenance && policies.MaintenanceIsOurs(v.server, v.maintenance)
}

// takeBoot takes a boot configuration for the one in force where the maintenance owns it and still has it booted.
func (v maintenanceShell) takeBoot(boot *v1alpha1.ServerBootConfiguration) {
	owns := v.maintenance.Spec.ServerBootConfigurationTemplate != nil && boots.OfMaintenance(v.server, v.maintenance).Owns(boot)
	if owns && boot.DeletionTimestamp.IsZero() {
		metav1.SetMetaDataAnnotation(&boot.ObjectMeta, v1alpha1.BootPurposeAnnotation, v1alpha1.BootPurposeMaintenance)
		v.boot = boot
	}
}

// asAsked brings power, boot and light to what the maintenance asks. Under another program's reference nothing is done. Off waits for no
// boot, and nothing waits for the light.
func (v maintenanceShell) asAsked(ctx context.Context, effect engine.Effect) loop.Progress {
	if !v.served() || v1alpha1.Ignored(v.maintenance) {
		return loop.Holds()
	}
	asked := boots.ForMaintenance(v.maintenance, v.server.Name)
	if p := v.light(ctx, asked); p.Phase != loop.Done {
		return p
	}
	if p := v.disarm(ctx); p.Phase != loop.Done {
		return p
	}
	if asked.Power == v1alpha1.PowerOff {
		if p := v.stop(ctx, asked); p.Phase != loop.Done {
			return p
		}
	}
	if p := v.prepare(ctx, asked); p.Phase != loop.Done {
		return p
	}
	if asked.Power == v1alpha1.PowerOn {
		return v.start(ctx, asked, effect)
	}
	return loop.Holds()
}

// light shows what the maintenance asks. That it was switched on for a maintenance is stored before, as for a state, so that it goes out
// also where the maintenance is gone before that.
func (v maintenanceShell) light(ctx context.Context, asked boots.Maintenance) loop.Progress {
	wanted := redfish.IndicatorLED(asked.Light)
	own := v.server.Spec.IndicatorLED
	lit := wanted != "" && wanted != redfish.LEDOff && (own == "" || own == v1alpha1.IndicatorLEDUnknown)
	return settingShell(v).show(ctx, wanted, lit, fmt.Sprintf("led-%s/%d-", v.maintenance.UID, v.maintenance.Generation))
}

// disarm takes away the boot of an agent that was prepared before, and that the boot service would still serve.
func (v maintenanceShell) disarm(ctx context.Context) loop.Progress {
	if b := bootShell(v); b.probe().Named(v.server) || b.wipe().Named(v.server) {
		return b.clear(ctx)
	}
	return loop.Holds()
}

// prepare keeps the boot configuration of the maintenance as its template says.
func (v maintenanceShell) prepare(ctx context.Context, asked boots.Maintenance) loop.Progress {
	switch {
	case v.maintenance.Spec.ServerBootConfigurationTemplate == nil: // what stands there is of a former maintenance
		v.server.Spec.MaintenanceBootConfigurationRef = nil
		return loop.Holds()
	case !asked.Prepare:
		return loop.Holds()
	}
	b := bootShell(v)
	if p, ok := b.interfacesKnown(); !ok {
		return p
	}
	in := boots.OwnedInput{Server: v.server, Owner: boots.OfMaintenance(v.server, v.maintenance), Found: v.boot}
	if in.Stands() {
		return loop.Holds()
	}
	return b.keepOwned(ctx, in, v.maintenance, &v.server.Spec.MaintenanceBootConfigurationRef, fleet.Maintenance)
}

func (v maintenanceShell) power() powerShell {
	return powerShell{scope: v.scope, under: []fleet.Action{fleet.Maintenance}}
}

// start switches the machine on: to boot what is prepared, or as it would by itself. One that runs is left running.
func (v maintenanceShell) start(ctx context.Context, asked boots.Maintenance, effect engine.Effect) loop.Progress {
	if asked.Boots {
		return v.power().powerOn(ctx, effect)
	}
	return v.power().powerOnByItself(ctx, effect)
}

// stop switches the machine off. Where that stops one that runs a window of the policy must be open, unless the maintenance ends.
func (v maintenanceShell) stop(ctx context.Context, asked boots.Maintenance) loop.Progress {
	if !asked.Ends && !v.shows(redfish.PowerOff) {
		if p, open := v.windowOpen(); !open {
			return p
		}
	}
	return v.power().stop(ctx, shutdownGrace, asked.Force)
}

// windowOpen says whether a window of the policy is open, however soon it closes.
func (v maintenanceShell) windowOpen() (loop.Progress, bool) {
	policy := v.settings().Maintenance
	if policy == nil || len(policy.Windows) == 0 {
		return loop.Progress{}, true
	}
	facts := v.windowFacts()
	o := policy.Window(&facts, v.now, 0)
	switch {
	case o.Err != nil:
		why := fmt.Sprintf("the window %s, which cannot be evaluated: %v", o.Name, o.Err)
		return loop.Waiting(v1alpha1.ReasonWindowClosed, why, time.Minute), false
	case o.Open || o.TooShort:
		return loop.Progress{}, true
	case o.Opens.IsZero():
		return loop.Waiting(v1alpha1.ReasonWindowClosed, "a window of the policy to open, before the machine is stopped", time.Minute), false
	}
	return loop.Waiting(v1alpha1.ReasonWindowClosed, fmt.Sprintf("the window %s, which opens at %s, before the machine is stopped",
		o.Name, o.Opens.UTC().Format(time.RFC3339)), o.Opens.Sub(v.now)), false
}

// windowFacts is what the windows of a policy read, in the words of the grant. The power is what was just read: it is not recorded yet.
func (v maintenanceShell) windowFacts() windows.Facts {
	m := v.maintenance
	f := policies.GrantFacts(v.server, v.claim)
	f.Power = v.facts.BMC.Power
	f.Maintenance = windows.MaintenanceFacts{Labels: m.Labels, Annotations: m.Annotations, Priority: m.Spec.Priority,
		Policy: cmp.Or(string(m.Spec.Policy), string(v1alpha1.ServerMaintenancePolicyOwnerApproval))}
	return f
}

// powerOnByItself switches the machine on without a boot override, so that it boots by its own boot order.
func (s powerShell) powerOnByItself(ctx context.Context, effect engine.Effect) loop.Progress {
	s.earns = effect.Earns
	s.way = wayIn{ways: []boots.Way{{}}, service: s.MediaURL, inserted: bootShell{s.scope}.mediaMayBeIn(), overridden: s.facts.BMC.OverrideSet}
	return s.carryOut(ctx, power.Decide(s.input(power.Want{On: true})))
}

// maintenanceDiffers says whether the maintenance is gone, ends, or asks for something else than what was decided on. It is the consent to
// what is done, so that it is read past the cache.
func (d decided) maintenanceDiffers(ctx context.Context) (string, error) {
	was := d.maintenance
	if was == nil {
		return "", nil
	}
	now, err := find[v1alpha1.ServerMaintenance](ctx, d.Reader, was.Namespace, was.Name)
	if err != nil || !recheck.MaintenanceDiffers(was, now, d.server.Name) {
		return "", err
	}
	return "the maintenance", nil
}
