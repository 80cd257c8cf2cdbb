// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	boots "github.com/metalaw/metalaw/controllers/server/boot"
	"github.com/metalaw/metalaw/engine"
	windows "github.com/metalaw/metalaw/engine/maintenance"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// bootAsClaimed keeps the claim's boot configuration in the claim's namespace as the claim asks.
func bootAsClaimed(d *draft, _ engine.Effect) loop.Progress {
	if p, ok := interfacesKnown(d); !ok {
		return p
	}
	in := boots.OwnedInput{Server: d.Server, Owner: boots.OfClaim(d.Server, d.Claim, d.Settings.Boot.Ignition), Found: d.Boot}
	if in.Stands() {
		return loop.Holds()
	}
	keepOwnedBoot(d, in, func(s *v1alpha1.Server, ref *v1alpha1.ObjectReference) { s.Spec.BootConfigurationRef = ref })
	return loop.Holds()
}

// keepOwnedBoot brings the boot configuration of an owner to what the owner asks, and has the server name it.
func keepOwnedBoot(d *draft, in boots.OwnedInput, refer func(*v1alpha1.Server, *v1alpha1.ObjectReference), besides ...fleet.Action) {
	in.Now = d.Now
	actions := append([]fleet.Action{fleet.Setting}, besides...)
	d.do(Permit{Actions: actions}, Recheck{Actions: actions}, OwnedBoot{In: in})
	ref := v1alpha1.ObjectReference{Namespace: in.Owner.GetNamespace(), Name: in.Owner.GetName()}
	d.set(func(s *v1alpha1.Server) { refer(s, &ref) })
}

// maintain brings power, boot and light to what the maintenance asks. Under another program's reference nothing is done.
// Off waits for no boot, and nothing waits for the light.
func maintain(d *draft, effect engine.Effect) loop.Progress {
	if !d.Served() || v1alpha1.Ignored(d.Maintenance) {
		return loop.Holds()
	}
	asked := boots.ForMaintenance(d.Maintenance, d.Server.Name)
	for _, step := range []func() loop.Progress{
		func() loop.Progress { return lightOfMaintenance(d, asked) },
		func() loop.Progress { return disarmAgents(d) },
		func() loop.Progress { return stopForMaintenance(d, asked) },
		func() loop.Progress { return prepareMaintenance(d, asked) },
		func() loop.Progress { return startForMaintenance(d, asked, effect) },
	} {
		if p := step(); p.Phase != loop.Done {
			return p
		}
	}
	return loop.Holds()
}

// lightOfMaintenance shows what the maintenance asks. That a maintenance switched it on is stored before, as for a state,
// so that it goes out also if the maintenance is gone before that.
func lightOfMaintenance(d *draft, asked boots.Maintenance) loop.Progress {
	wanted := redfish.IndicatorLED(asked.Light)
	lit := wanted != "" && wanted != redfish.LEDOff && askedLight(d.Server) == ""
	return showLight(d, wanted, lit, fmt.Sprintf("led-%s/%d-", d.Maintenance.UID, d.Maintenance.Generation))
}

// disarmAgents takes away the boot of an agent that was prepared before, and that the boot service would still serve.
func disarmAgents(d *draft) loop.Progress {
	if d.probe().Named(d.Server) || d.wipe().Named(d.Server) {
		return clearBoots(d)
	}
	return loop.Holds()
}

// prepareMaintenance keeps the boot configuration of the maintenance as its template says.
func prepareMaintenance(d *draft, asked boots.Maintenance) loop.Progress {
	refer := func(s *v1alpha1.Server, ref *v1alpha1.ObjectReference) { s.Spec.MaintenanceBootConfigurationRef = ref }
	if d.Maintenance.Spec.ServerBootConfigurationTemplate == nil {
		if d.Server.Spec.MaintenanceBootConfigurationRef != nil { // it is of a former maintenance
			d.set(func(s *v1alpha1.Server) { refer(s, nil) })
		}
		return loop.Holds()
	}
	if !asked.Prepare {
		return loop.Holds()
	}
	if p, ok := interfacesKnown(d); !ok {
		return p
	}
	in := boots.OwnedInput{Server: d.Server, Owner: boots.OfMaintenance(d.Server, d.Maintenance), Found: d.Boot}
	if !in.Stands() {
		keepOwnedBoot(d, in, refer, fleet.Maintenance)
	}
	return loop.Holds()
}

// startForMaintenance switches the machine on: to boot what is prepared, or as it would by itself. One that runs is left
// running.
func startForMaintenance(d *draft, asked boots.Maintenance, effect engine.Effect) loop.Progress {
	switch {
	case asked.Power != v1alpha1.PowerOn:
		return loop.Holds()
	case asked.Boots:
		return switchOn(d, effect, fleet.Maintenance)
	}
	return switchOnByItself(d, effect, fleet.Maintenance)
}

// stopForMaintenance switches the machine off. If that stops one that runs, a window of the policy must be open, unless the
// maintenance ends.
func stopForMaintenance(d *draft, asked boots.Maintenance) loop.Progress {
	if asked.Power != v1alpha1.PowerOff {
		return loop.Holds()
	}
	if !asked.Ends && !d.Shows(redfish.PowerOff) {
		if p, open := windowOpen(d); !open {
			return p
		}
	}
	return switchOff(d, ShutdownGrace, asked.Force, fleet.Maintenance)
}

// windowOpen says whether a window of the policy is open, however soon it closes.
func windowOpen(d *draft) (loop.Progress, bool) {
	policy := d.Settings.Maintenance
	if policy == nil || len(policy.Windows) == 0 {
		return loop.Progress{}, true
	}
	facts := d.windowFacts()
	o := policy.Window(&facts, d.Now, 0)
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
		o.Name, o.Opens.UTC().Format(time.RFC3339)), o.Opens.Sub(d.Now)), false
}

// windowFacts is what the windows of a policy read, in the words of the grant. The power is what was just read: it is not
// recorded yet.
func (s *Seen) windowFacts() windows.Facts {
	m := s.Maintenance
	f := policies.GrantFacts(s.Server, s.Claim)
	f.Power = s.Facts.BMC.Power
	f.Maintenance = windows.MaintenanceFacts{Labels: m.Labels, Annotations: m.Annotations, Priority: m.Spec.Priority,
		Policy: cmp.Or(string(m.Spec.Policy), string(v1alpha1.ServerMaintenancePolicyOwnerApproval))}
	return f
}
