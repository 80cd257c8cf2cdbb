// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/maintenance/grant"
	"github.com/metalaw/metalaw/engine/maintenance"
)

// Objects are the objects on which grants depend, as a reader has them. The command line asks what the scheduler would decide over them.
type Objects struct {
	Now time.Time
	// Setting is what the policy in force says; nil is the default.
	Setting *maintenance.Policy
	// Control is nil where there is none.
	Control      *policyv1alpha1.FleetControl
	Servers      []v1alpha1.Server
	Claims       []v1alpha1.ServerClaim
	Maintenances []v1alpha1.ServerMaintenance
}

// Snapshot is what the scheduler would decide over. refused says why a maintenance may not be granted whatever its server does, and
// mayEnforce that its maker may have it granted without the holder.
func (o *Objects) Snapshot(refused func(*v1alpha1.ServerMaintenance) grant.Answer, mayEnforce func(*v1alpha1.ServerMaintenance) bool) grant.Snapshot {
	v := &view{at: o.Now, setting: o.Setting, control: o.Control, servers: make(map[string]*v1alpha1.Server, len(o.Servers)),
		claims: make(map[v1alpha1.ObjectReference]*v1alpha1.ServerClaim, len(o.Claims)), of: map[string][]*v1alpha1.ServerMaintenance{}}
	for i := range o.Servers {
		v.servers[o.Servers[i].Name] = &o.Servers[i]
	}
	for i := range o.Claims {
		v.add(&o.Claims[i])
	}
	for i := range o.Maintenances {
		v.maintenances = append(v.maintenances, &o.Maintenances[i])
	}
	v.group()
	return v.snapshot(refused, mayEnforce)
}

// add enters a claim.
func (v *view) add(c *v1alpha1.ServerClaim) {
	v.claims[v1alpha1.ObjectReference{Namespace: c.Namespace, Name: c.Name}] = c
	v.claimsWait = v.claimsWait || c.Status.Phase != v1alpha1.PhaseBound && c.DeletionTimestamp.IsZero()
}
