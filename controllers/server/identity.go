// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/identity"
	"github.com/metalaw/metalaw/controllers/server/power"
)

// identityStored keeps in the inventory what the BMC shows of the machine now, before an agent is booted that will name itself. It never
// takes it from a report, nor from the status, which reports fill.
func (v bootShell) identityStored(ctx context.Context) (loop.Progress, bool) {
	if v.Identities == nil {
		return loop.Progress{}, true
	}
	in := identity.Input{UUID: v.server.Spec.SystemUUID, Now: v.now}
	if v.inventory != nil && v.inventory.Identity != nil {
		in.Stored = v.inventory.Identity.BMC
	}
	in.Reading, in.Fresh = v.Identities.Refresh(v.server.Name, v.target, identity.MaxAge)
	out := identity.Decide(in)
	if out.Waits != "" {
		return loop.Waiting(power.WaitsForReading, out.Waits, v.pollInterval()), false
	}
	if out.Store == nil {
		return loop.Progress{}, true
	}
	if p, ok := v.confirm(ctx, fleet.Record); !ok {
		return p, false
	}
	if err := custodyShell(v).writeInventory(ctx, func(i *policyv1alpha1.ServerInventory) { identityOf(i).BMC = out.Store }); err != nil {
		return conflictOrBroken(err), false
	}
	return loop.Progress{}, true
}

// identityOf is what the inventory keeps of the identity, made where it keeps nothing.
func identityOf(i *policyv1alpha1.ServerInventory) *policyv1alpha1.MachineIdentity {
	if i.Identity == nil {
		i.Identity = &policyv1alpha1.MachineIdentity{}
	}
	return i.Identity
}
