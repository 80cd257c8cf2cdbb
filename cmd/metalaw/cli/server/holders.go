// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
)

// holders are the claims that exist; nil where they may not be read, which leaves the question to the manager.
type holders struct{ claims []v1alpha1.ServerClaim }

// readHolders lists the claims where a request depends on them.
func (r *request) readHolders(ctx context.Context, c client.Reader) (*holders, error) {
	if r.verb.operation != v1alpha1.OperationRelease {
		return nil, nil
	}
	var list v1alpha1.ServerClaimList
	err := c.List(ctx, &list)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, access.Explain(err, "list", access.ServerClaims)
	}
	return &holders{claims: list.Items}, nil
}

// of is the claim that holds a server: the one whose UID the server remembers; where it remembers none, the one that names
// the server and that the server names. Nil where none is known.
func (h *holders) of(s *v1alpha1.Server) *v1alpha1.ServerClaim {
	if h == nil {
		return nil
	}
	uid, ref := s.Annotations[v1alpha1.ClaimUIDAnnotation], s.Spec.ServerClaimRef
	for i := range h.claims {
		c := &h.claims[i]
		names := c.Spec.ServerRef != nil && c.Spec.ServerRef.Name == s.Name
		named := ref != nil && ref.Namespace == c.Namespace && ref.Name == c.Name
		if uid == "" && names && named || uid != "" && uid == string(c.UID) && (names || named) {
			return c
		}
	}
	return nil
}
