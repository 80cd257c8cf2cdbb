// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/server/operations"
	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/engine/diag"
)

// maxWhy bounds the reason of a decommission that the condition repeats.
const maxWhy = 256

// recordDecommission says how far a server has come that is to go out of service.
func recordDecommission(r *record) {
	why, asked := r.s.Annotations[v1alpha1.DecommissionAnnotation]
	out := r.s.Status.State == v1alpha1.StateDecommissioned
	switch b := r.Governance.Bundle; {
	case !asked && !out:
		r.drop(v1alpha1.ConditionDecommission)
	case out:
		words := "It is out of service"
		if why != "" {
			words += ": " + diag.Shortened(why, maxWhy)
		}
		r.condition(v1alpha1.ConditionDecommission, metav1.ConditionTrue, v1alpha1.ReasonDecommissioned,
			words+". Delete its BMC and the Server, or take it back (metalaw server recommission).")
	case r.Decision.Moves() || r.heldBriefly():
	case b != nil && !b.Lifecycle.Defines(engine.State(v1alpha1.StateDecommissioned)):
		r.condition(v1alpha1.ConditionDecommission, metav1.ConditionFalse, v1alpha1.ReasonNoRule,
			fmt.Sprintf("Policy revision %s defines no state %s. Promote one that does.", b.Revision.Name, v1alpha1.StateDecommissioned))
	default:
		o := r.Observation
		o.Server = r.s
		reason, message := operations.DecommissionWaits(o, r.Facts)
		r.condition(v1alpha1.ConditionDecommission, metav1.ConditionFalse, reason, message)
	}
}
