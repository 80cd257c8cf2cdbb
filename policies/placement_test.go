// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/placement"
)

func TestPlacementOfAClaim(t *testing.T) {
	if placement.File != v1alpha1.PlacementAnnotation {
		t.Errorf("findings speak of %s", placement.File)
	}
	claim := func(annotations map[string]string) *v1alpha1.ServerClaim {
		c := &v1alpha1.ServerClaim{}
		c.Annotations = annotations
		return c
	}
	none := claim(nil)
	if p, found := PlacementOf(none); p != nil || found != nil || GangOf(none) != nil {
		t.Error("a claim without a placement has one")
	}
	empty := claim(map[string]string{v1alpha1.PlacementAnnotation: ""})
	if p, found := PlacementOf(empty); p != nil || !found.HasErrors() || GangOf(empty) != nil {
		t.Error("an empty placement is one that asks for nothing")
	}
	member := claim(map[string]string{v1alpha1.PlacementAnnotation: "gang: {name: db, size: 3}"})
	if g := GangOf(member); g == nil || *g != (placement.Gang{Name: "db", Size: 3}) {
		t.Error(g)
	}
}
