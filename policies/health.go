// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
)

const (
	healthWarning  = "Warning"
	healthCritical = "Critical"
)

// HealthReason is the reason of the condition Healthy for what the BMC says of a server's own machine; false where it says
// nothing. Critical health whose named parts are all no hardware, such as an open lid or an old entry in a log, is tolerated: it
// counts as Warning in each decision. Where nothing is named, a disk or memory module may have failed.
func HealthReason(s SystemReading, stops string) (reason string, known bool) {
	if s.Health == healthCritical && (s.Harmless && len(s.Faulty) == 0 || stops == bundle.StopsNothing) {
		return v1alpha1.ReasonHealthTolerated, true
	}
	reason, known = healthReasons[s.Health]
	return reason, known
}

// health is the fact bmc.health. A critical part that only keeps the server from being offered is left to the selection,
// which sees the condition Healthy.
func (o Observation) health() string {
	stops := o.Settings.Health.CriticalStops
	reason, _ := HealthReason(o.System, stops)
	if reason == v1alpha1.ReasonHealthTolerated || reason == v1alpha1.ReasonHealthCritical && stops == bundle.StopsOffering {
		return healthWarning
	}
	return cmp.Or(o.System.Health, unknown)
}
