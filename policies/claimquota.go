// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// ClaimUsage is how many claims a namespace has beside one that is to be created, and how many it may have. Admission counts claims;
// the scheduler, which counts again, has Held.
type ClaimUsage struct {
	// Revision names the bundle that sets the limit.
	Namespace, Revision string
	Used, Limit         int
	// Among says of some that are counted which they are; empty where that need not be told.
	Among string
	// Kept says that a server is held for a former claim of the name of the one that is to be created.
	Kept bool
}

// Refusal says in words that the namespace has no room for one claim more; empty where it has.
func (u ClaimUsage) Refusal() string {
	if u.Used < u.Limit {
		return ""
	}
	back := ""
	if u.Kept {
		back = "; a server is held for a former claim of this name: a claim that names it in spec.serverRef has it back"
	}
	if u.Limit == 0 {
		return fmt.Sprintf("exceeded quota: namespace %q may have no claims; ask who keeps the policy to raise settings.claims.quota "+
			"of the bundle in force (%s)%s", u.Namespace, u.Revision, back)
	}
	among := ""
	if u.Among != "" {
		among = " (" + u.Among + ")"
	}
	return fmt.Sprintf("exceeded quota: namespace %q has %d of %d claims%s; delete one of them, or ask who keeps the policy to raise "+
		"settings.claims.quota of the bundle in force (%s)%s", u.Namespace, u.Used, u.Limit, among, u.Revision, back)
}

// TakesServer says that a claim counts against the quota of its namespace: it holds a server or asks for one. A claim that ends asks
// for none, and holds its server until it is gone.
func TakesServer(c *v1alpha1.ServerClaim) bool {
	return c.DeletionTimestamp.IsZero() || c.Spec.ServerRef != nil && c.Spec.ServerRef.Name != ""
}

// HeldFor says that a server is held for a claim, or for a former one of its name.
func HeldFor(s *v1alpha1.Server, c *v1alpha1.ServerClaim) bool {
	ref := s.Spec.ServerClaimRef
	return ref != nil && ref.Namespace == c.Namespace && ref.Name == c.Name && !v1alpha1.BindingEnded(s)
}

// ComesBack says that a claim names the server that is held for it, or for a former one of its name; nil is none. It gets that server
// for any labels, and the server counts for the namespace as it is.
func ComesBack(c *v1alpha1.ServerClaim, s *v1alpha1.Server) bool {
	return s != nil && c.Spec.ServerRef != nil && c.Spec.ServerRef.Name == s.Name && HeldFor(s, c)
}
