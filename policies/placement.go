// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/placement"
)

// placements remembers what was compiled: all that ask about a claim ask for the same.
var placements placement.Cache

// PlacementOf compiles what a claim says in v1alpha1.PlacementAnnotation. Without the annotation the placement is nil,
// which asks for nothing. It is nil as well where a finding is an Error: such a claim asks for something that is not
// known, and must not be bound. The findings are shared and must not be changed.
func PlacementOf(c *v1alpha1.ServerClaim) (*placement.Placement, diag.List) {
	text, ok := c.Annotations[v1alpha1.PlacementAnnotation]
	if !ok {
		return nil, nil
	}
	return placements.Parse(text)
}

// GangOf is the gang that a claim is part of; nil where it is part of none, and where its placement cannot be read.
func GangOf(c *v1alpha1.ServerClaim) *placement.Gang {
	p, _ := PlacementOf(c)
	return p.Gang()
}
