// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// Relation says what a server's reference to a claim's name means for that claim.
type Relation = policies.Relation

// The relations.
const (
	Unrelated = policies.Unrelated
	Holds     = policies.Holds
	Adoptable = policies.Adoptable
	Another   = policies.Another
)

// RelationOf tells the relations apart. It is pure.
func RelationOf(s *v1alpha1.Server, c *v1alpha1.ServerClaim) Relation {
	return policies.RelationOf(s, c)
}

// untouched says that a server was written for a claim's UID and that nothing was booted for it: it is still Available,
// and the mark that is stored before the first boot is not there.
func untouched(s *v1alpha1.Server) bool {
	return s.Status.State == v1alpha1.StateAvailable && written(s)
}

// retractable says that a server was written for a claim's UID and may be taken back: nothing was booted for the claim. One
// that has moved to Reserved is so only on the word of the claim itself, and where its lifecycle is known, because a status
// that was lost shows no marks.
func retractable(s *v1alpha1.Server) bool {
	return untouched(s) || s.Status.State == v1alpha1.StateReserved && s.Status.Lifecycle != nil && written(s)
}

// written says that a server is written for a claim's UID, and not Dirty.
func written(s *v1alpha1.Server) bool {
	return s.Spec.ServerClaimRef != nil && s.Annotations[v1alpha1.ClaimUIDAnnotation] != "" && !v1alpha1.BindingEnded(s) &&
		!policies.ServerStateOf(s).Dirty
}

// Untouched says that a server holds a claim only on paper: it never left Available since. Its reference may be taken
// away under the optimistic lock, and no wipe is due.
func Untouched(s *v1alpha1.Server) bool { return untouched(s) }

// open says that a claim is the scheduler's business: it can be bound and is not known to be.
func open(c *v1alpha1.ServerClaim) bool { return policies.Open(c) }
