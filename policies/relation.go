// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/claims"
)

// Relation says what a server's reference to a claim's name means for that claim.
type Relation = claims.Relation

// The relations.
const (
	Unrelated = claims.Unrelated
	Holds     = claims.Holds
	Adoptable = claims.Adoptable
	Another   = claims.Another
)

// RelationOf tells the relations apart. It is pure.
func RelationOf(s *v1alpha1.Server, c *v1alpha1.ServerClaim) Relation {
	one := claims.Claim{Key: claims.Key{Namespace: c.Namespace, Name: c.Name}, UID: string(c.UID)}
	if c.Spec.ServerRef != nil {
		one.ServerRef = c.Spec.ServerRef.Name
	}
	if s.Spec.ServerClaimRef == nil {
		return Unrelated
	}
	return HolderOf(s).RelationOf(s.Name, &one)
}
