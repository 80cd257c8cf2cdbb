// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/controllers/server/identity"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/controllers/server/power"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/internal/machineid"
	"github.com/metalaw/metalaw/redfish"
)

// identityStored keeps in the inventory what the BMC shows of the machine now, before an agent is booted that will
// name itself. It never takes it from a report, nor from the status, which reports fill.
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
	store := func(i *policyv1alpha1.ServerInventory) { identity.Of(i).BMC = out.Store }
	if err := custodyShell(v).writeInventory(ctx, store); err != nil {
		return conflictOrBroken(err), false
	}
	return loop.Progress{}, true
}

// rivalHolds waits while another BMC shows the UUID of the server and nothing proves its machine. A machine that runs
// is not booted.
func (v bootShell) rivalHolds(ctx context.Context) (loop.Progress, bool) {
	rivals, err := identity.Rivals(ctx, v.Client, v.Rivals, v.server, v.inventory)
	if err != nil {
		return loop.Broken(err), true
	}
	why := gates.RivalHolds(identity.BMCOf(v.server), v.inventory, rivals)
	if why == "" || v.shows(redfish.PowerOn) {
		return loop.Progress{}, false
	}
	return loop.Waiting(gates.RivalBMC, why, v.pollInterval()), true
}

// noteRivals keeps the rivals in the inventory, where they outlive this process, and where doctor reads them.
func (v custodyShell) noteRivals(ctx context.Context) error {
	rivals, err := identity.Rivals(ctx, v.Client, v.Rivals, v.server, v.inventory)
	if err != nil || v.inventory == nil || v.bundle == nil || !identity.RivalsDiffer(v.inventory, rivals) {
		return err
	}
	if _, ok := v.confirm(ctx, fleet.Record); !ok {
		return nil // the next look notes them
	}
	return v.writeInventory(ctx, func(i *policyv1alpha1.ServerInventory) { identity.Of(i).Rivals = rivals })
}

// prove has the inventory keep that a person answers for the machine, before the operation ends.
func (v operationShell) prove(ctx context.Context) error {
	s := v.server
	if operations.Asked(s) != v1alpha1.OperationProve || s.Status.Operation.Active() || v.unconfirmed ||
		s.Status.Lifecycle == nil || v.bundle == nil {
		return nil
	}
	settled, why := operations.Proof(v.input(engine.Decision{}))
	if why != "" {
		return nil
	}
	var proved *policyv1alpha1.MachineIdentity
	err := custodyShell(v).writeInventory(ctx, func(i *policyv1alpha1.ServerInventory) {
		i.Identity = machineid.Settle(i, settled)
		proved = i.Identity
	})
	if err == nil {
		v.proved = proved
	}
	return err
}
