// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/gates"
	"github.com/metalaw/metalaw/internal/uuids"
)

// identityState is what is stored of servers and their machines.
type identityState struct {
	servers     []metalv1alpha1.Server
	inventories []policyv1alpha1.ServerInventory
}

func (r reader) identities(ctx context.Context) (identityState, error) {
	var servers metalv1alpha1.ServerList
	var inventories policyv1alpha1.ServerInventoryList
	if err := r.List(ctx, &servers); err != nil {
		return identityState{}, err
	}
	err := r.List(ctx, &inventories)
	return identityState{servers: servers.Items, inventories: inventories.Items}, err
}

// checkIdentities names the servers whose machine is not proved, by their last reports. A wipe under wipe.identity:
// Proved refuses them.
func checkIdentities(v view) finding {
	const check = "machine identity"
	if v.identitiesErr != nil {
		return unread(check, v.identitiesErr)
	}
	by := map[string]*policyv1alpha1.ServerInventory{}
	for i := range v.identities.inventories {
		by[v.identities.inventories[i].Spec.SystemUUID] = &v.identities.inventories[i]
	}
	found := map[string][]string{}
	proved := 0
	for i := range v.identities.servers {
		s := &v.identities.servers[i]
		switch reason, name := identityOf(s, by); reason {
		case "":
			proved++
		default:
			found[reason] = append(found[reason], name)
		}
	}
	for _, names := range found {
		slices.Sort(names)
	}
	const remedy = "see condition IdentityUnproven of each; have its BMC show a serial number or an address, " +
		"inspect it again, or answer for it: metalaw server prove"
	unproven, other := found[metalv1alpha1.ReasonMachineUnproven], found[metalv1alpha1.ReasonMachineContradicts]
	rival, unknown := found[metalv1alpha1.ReasonRivalBMC], found[notKnown]
	message := fmt.Sprintf("%d proved; %d unproven%s; %d whose last report is of another machine, or was refused%s; "+
		"%d whose UUID another BMC shows%s; %d not known until their next inspection%s", proved, len(unproven),
		named(unproven), len(other), named(other), len(rival), named(rival), len(unknown), named(unknown))
	if len(unproven)+len(other)+len(rival) > 0 {
		return finding{check, Warned, message, remedy}
	}
	return finding{check, Passed, message, ""}
}

// notKnown is a server whose BMC was not asked yet what it shows, or that has not reported.
const notKnown = "NotKnown"

// identityOf is what is to be said of the machine of a server, and its name with the rivals of its BMC.
func identityOf(s *metalv1alpha1.Server, by map[string]*policyv1alpha1.ServerInventory) (reason, name string) {
	bmc, inventory := "spec.bmc", (*policyv1alpha1.ServerInventory)(nil)
	if s.Spec.BMCRef != nil {
		bmc = s.Spec.BMCRef.Name
	}
	for _, uuid := range uuids.Spellings(s.Spec.SystemUUID) {
		if by[uuid] != nil && inventory == nil {
			inventory = by[uuid]
		}
	}
	reason, _ = gates.IdentityStanding(bmc, inventory)
	switch {
	case reason == metalv1alpha1.ReasonRivalBMC:
		name = fmt.Sprintf("%s (BMC %s", s.Name, bmc)
		for _, r := range inventory.Identity.Rivals {
			name += " and BMC " + r.Name
		}
		return reason, name + ")"
	case reason == "" && (inventory == nil || inventory.Identity == nil || inventory.Identity.BMC == nil ||
		inventory.Report == nil):
		return notKnown, s.Name
	}
	return reason, s.Name
}

func named(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (" + list(names) + ")"
}
