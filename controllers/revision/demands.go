// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"fmt"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/metalprobe/registry"
)

// WipeDemands is what the revision that governs a server asks of the end of a wipe. One that cannot be loaded says
// nothing.
func (s *Store) WipeDemands(server *v1alpha1.Server) (registry.Demands, error) {
	name, b, err := s.asked(server)
	if err != nil {
		return registry.Demands{}, err
	}
	if b.StandsIn {
		return registry.Demands{}, fmt.Errorf("policy revision %s, which governs server %s, does not compile in this manager; "+
			"see the conditions of that PolicyRevision", name, server.Name)
	}
	w := b.Settings.Wipe
	return registry.Demands{
		FailHidden: w.Hidden == bundle.HiddenFail, EraseRemovable: w.Removable == bundle.RemovableErase, Excused: w.Excused,
	}, nil
}
