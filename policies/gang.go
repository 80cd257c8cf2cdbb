// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// Open says that a claim is the scheduler's business: it can be bound and is not known to be.
func Open(c *v1alpha1.ServerClaim) bool {
	return c.DeletionTimestamp.IsZero() && slices.Contains(c.Finalizers, v1alpha1.FinalizerServerClaim) &&
		!v1alpha1.Ignored(c) && !confirmed(c)
}

// confirmed says that the claim is Bound by our own word. One that a backup or another operator calls Bound is not: its UID
// has to be recorded on its server.
func confirmed(c *v1alpha1.ServerClaim) bool {
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	return c.Status.Phase == v1alpha1.PhaseBound && ready != nil && ready.Reason != v1alpha1.ReasonAdopting &&
		meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionBound)
}
