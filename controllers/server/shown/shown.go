// SPDX-License-Identifier: Apache-2.0

// Package shown turns what a BMC shows of a system into what the facts are made of.
package shown

import (
	"fmt"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// System is what an answer of the BMC says of the system that is wanted.
func System(want redfish.Identity, s redfish.SystemSnapshot) policies.SystemReading {
	return policies.SystemReading{Reachable: true, Power: string(s.Power), Health: string(s.Health),
		Identity:    policies.IdentityOf(redfish.Shows(want, s), s.Identity.UUID),
		NoOverride:  s.Boot.Missing,
		Faulty:      faulty(s.Critical),
		Harmless:    len(s.Critical) > 0 && len(faulty(s.Critical)) == 0,
		OverrideSet: s.Boot.Enabled != "" && s.Boot.Enabled != "Disabled"}
}

// faulty are the names of the parts of the hardware that the BMC reports as critical.
func faulty(parts []redfish.HealthPart) []string {
	var names []string
	for _, p := range parts {
		if p.Hardware {
			names = append(names, p.Name)
		}
	}
	return names
}

// WithoutURI says what a server waits for that names its BMC and not the system there.
func WithoutURI(s *v1alpha1.Server) string {
	if s.Spec.BMCRef != nil {
		return fmt.Sprintf("spec.systemURI is empty. It is filled in once BMC %s shows a system with the UUID %s. If it does not, compare the UUID, "+
			"or write the URI of the system at its BMC, like /redfish/v1/Systems/1", s.Spec.BMCRef.Name, s.Spec.SystemUUID)
	}
	return "spec.systemURI is empty, and nothing fills it in beside spec.bmc; write the URI of the system at its BMC, like /redfish/v1/Systems/1"
}
