// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/policies"
)

// Maintenance is what a maintenance asks of its machine now.
type Maintenance struct {
	// Ends says that the machine is only brought to where it can be handed back.
	Ends bool
	// Prepare says that a boot configuration is to stand.
	Prepare bool
	// Power is what the machine is to be; empty leaves it as it is.
	Power v1alpha1.Power
	// Boots says that a power-on boots what is prepared, and not by the machine's own boot order.
	Boots bool
	// Force says that the power may be cut where the operating system does not shut down.
	Force bool
	// Light is what the locator light is to show; empty leaves it as it is.
	Light v1alpha1.IndicatorLED
}

// ForMaintenance decides what a maintenance asks of the machine of a server. What it booted does not outlive it: it is asked to shut down,
// and its power is cut only where somebody wrote down why. One that failed asks for nothing until it ends.
func ForMaintenance(m *v1alpha1.ServerMaintenance, server string) Maintenance {
	boots := m.Spec.ServerBootConfigurationTemplate != nil
	out := Maintenance{Ends: policies.MaintenanceEnds(m, server)}
	if m.Spec.LocatorLED != v1alpha1.IndicatorLEDUnknown {
		out.Light = m.Spec.LocatorLED
	}
	switch {
	case out.Ends:
		if out.Light != "" {
			out.Light = v1alpha1.IndicatorLEDOff
		}
		if boots {
			out.Power, out.Force = v1alpha1.PowerOff, m.Annotations[v1alpha1.ForceOffReasonAnnotation] != ""
		}
	case m.Status.State == v1alpha1.ServerMaintenanceStateFailed:
	default:
		out.Prepare, out.Boots, out.Power, out.Force = boots, boots, m.Spec.ServerPower, true
	}
	return out
}

// OfMaintenance is a maintenance with a template, as the owner of the boot that it asks for.
func OfMaintenance(s *v1alpha1.Server, m *v1alpha1.ServerMaintenance) Owner {
	o := Owner{Object: m, Kind: "ServerMaintenance", Called: "maintenance", Purpose: v1alpha1.BootPurposeMaintenance,
		Remedy: "delete it, or make the maintenance under another name"}
	if t := m.Spec.ServerBootConfigurationTemplate; t != nil {
		o.Spec = *t.Spec.DeepCopy()
	}
	o.Spec.ServerRef.Name = s.Name
	return o
}
