// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/claims"
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

// Musters says that a claim counts as a member of the gang that it names: it has a server, or can be given one.
func Musters(c *v1alpha1.ServerClaim) bool {
	return c.DeletionTimestamp.IsZero() && (c.Spec.ServerRef != nil || Open(c))
}

// Assembled says why a gang cannot be given servers whatever the fleet has.
func Assembled(quota bundle.Quota, namespace string, sizes []int64, lost int) (reason, why string) {
	return claims.Assembled(quota, namespace, sizes, lost)
}

// Keeps says that a server is the one that a claim names, and is written for it. As long as a member of a gang has none that it
// keeps and names one, the others wait.
func Keeps(s *v1alpha1.Server, c *v1alpha1.ServerClaim) bool {
	return c.Spec.ServerRef != nil && c.Spec.ServerRef.Name == s.Name && has(s, c)
}

// Reserved says that a server is written for a claim that names none yet.
func Reserved(s *v1alpha1.Server, c *v1alpha1.ServerClaim) bool {
	return c.Spec.ServerRef == nil && has(s, c)
}

func has(s *v1alpha1.Server, c *v1alpha1.ServerClaim) bool {
	return RelationOf(s, c) == Holds && !v1alpha1.BindingEnded(s)
}
