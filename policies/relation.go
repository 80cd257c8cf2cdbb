// SPDX-License-Identifier: Apache-2.0

package policies

import "github.com/metalaw/metalaw/api/v1alpha1"

// Relation says what a server's reference to a claim's name means for that claim.
type Relation uint8

const (
	// Unrelated says that the server names no claim, or one of another name.
	Unrelated Relation = iota
	// Holds says that the server names the claim and records its UID.
	Holds
	// Adoptable says that the server names the claim but records another UID or none, nobody recorded a release, and the claim's
	// own serverRef names the server. So look a claim restored from a backup and a binding made before us.
	Adoptable
	// Another says that the server names a claim of that name, but means another one; this one inherits nothing.
	Another
)

// RelationOf tells the relations apart. It is pure.
func RelationOf(s *v1alpha1.Server, c *v1alpha1.ServerClaim) Relation {
	ref := s.Spec.ServerClaimRef
	switch {
	case ref == nil || ref.Namespace != c.Namespace || ref.Name != c.Name:
		return Unrelated
	case s.Annotations[v1alpha1.ClaimUIDAnnotation] == string(c.UID):
		return Holds
	case c.Spec.ServerRef != nil && c.Spec.ServerRef.Name == s.Name && !v1alpha1.BindingEnded(s):
		return Adoptable
	default:
		return Another
	}
}
