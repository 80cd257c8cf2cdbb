// SPDX-License-Identifier: Apache-2.0

package index

import (
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/claims"
	"github.com/metalaw/metalaw/engine/claims/solve"
)

// SnapshotOf puts together what was read, for the solver. The claims are those that a claim in question may have to keep away from: one
// that is not among them does not count for a spread. Inventories that are missing leave hardware unknown. The policy and the quota are
// the caller's to add.
func SnapshotOf(servers []v1alpha1.Server, inventories []policyv1alpha1.ServerInventory, all []*claims.Claim, now time.Time) *solve.Snapshot {
	x := New()
	for i := range inventories {
		x.SawInventory(&inventories[i])
	}
	for i := range servers {
		x.Saw(&servers[i])
	}
	return &solve.Snapshot{Fleet: x.Index, Now: now.Unix(), Claims: func(namespace string) []*claims.Claim {
		var those []*claims.Claim
		for _, c := range all {
			if c.Namespace == namespace {
				those = append(those, c)
			}
		}
		return those
	}}
}
