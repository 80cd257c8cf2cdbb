// SPDX-License-Identifier: Apache-2.0

package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/gates"
)

// recordUnproven says that nothing proves which machine reports for the server, or that another one did.
func recordUnproven(r *record) {
	bmc := "spec.bmc"
	if r.s.Spec.BMCRef != nil {
		bmc = r.s.Spec.BMCRef.Name
	}
	reason, message := gates.IdentityStanding(bmc, r.Inventory)
	if reason == "" || r.s.Status.State == v1alpha1.StateDecommissioned {
		r.drop(v1alpha1.ConditionIdentityUnproven)
		return
	}
	r.condition(v1alpha1.ConditionIdentityUnproven, metav1.ConditionTrue, reason, message)
}
