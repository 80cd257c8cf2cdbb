// SPDX-License-Identifier: Apache-2.0

package status

import (
	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/gates"
)

// unproven says of a machine that nothing proves, or that another one reported for, why that is so. Both are empty where it is proved.
func unproven(s *v1alpha1.Server, inventory *policyv1alpha1.ServerInventory) (reason, message string) {
	if s.Status.State == v1alpha1.StateDecommissioned {
		return "", ""
	}
	bmc := "spec.bmc"
	if s.Spec.BMCRef != nil {
		bmc = s.Spec.BMCRef.Name
	}
	return gates.IdentityStanding(bmc, inventory)
}
