// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"fmt"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

// MayReport says whether a probe without a token may describe a server now.
func (s *Store) MayReport(server *v1alpha1.Server) (bool, error) {
	if server.Status.State != v1alpha1.StateDiscovery {
		return false, nil
	}
	return s.unauthenticated(server)
}

// MayReportBootState says whether the operating system of a claim, which has no token, may say that it is up.
func (s *Store) MayReportBootState(server *v1alpha1.Server) (bool, error) {
	if server.Status.State != v1alpha1.StateReserved || server.Spec.BootConfigurationRef == nil {
		return false, nil
	}
	return s.unauthenticated(server)
}

// unauthenticated is what the revision says that governs a server. One that cannot be loaded, or is held, says nothing.
func (s *Store) unauthenticated(server *v1alpha1.Server) (bool, error) {
	name, b, err := s.asked(server)
	if err != nil {
		return false, err
	}
	if why, held := s.Held(name); held {
		return false, fmt.Errorf("policy revision %s, which governs server %s, is held: %s; "+
			"let its PolicyRevision be mended, or promote a bundle that this manager accepts", name, server.Name, why)
	}
	return b.Settings.AllowUnauthenticated, nil
}

// asked is the revision that governs a server, or, before one does, the one that it is to come under.
func (s *Store) asked(server *v1alpha1.Server) (string, *bundle.Bundle, error) {
	if l := server.Status.Lifecycle; l != nil && l.Revision != "" {
		b, loaded := s.Revision(l.Revision)
		if !loaded {
			return "", nil, fmt.Errorf("policy revision %s, which governs server %s, cannot be loaded; "+
				"see the conditions of that PolicyRevision", l.Revision, server.Name)
		}
		return l.Revision, b, nil
	}
	b := s.Governing(server)
	if b.StandsIn {
		return "", nil, fmt.Errorf("policy revision %s, which server %s is to come under, does not compile in this manager; "+
			"see the conditions of that PolicyRevision", b.Revision.Name, server.Name)
	}
	return b.Revision.Name, b, nil
}
