// SPDX-License-Identifier: Apache-2.0

// Package maintenance holds what a bundle says of maintenance: windows, limits, waves and checks. It is pure.
package maintenance

import "time"

// Policy is the setting maintenance of a bundle, compiled.
type Policy struct {
	// AfterRelease has a server that no claim holds granted only once its release grace is over and no claim waits for it.
	AfterRelease bool
	// PerClaim has an approval cover every maintenance of the claim's server, also those that came later.
	PerClaim bool
	// EnforcedNotice is how long the holder of a claim is told before an enforced maintenance begins.
	EnforcedNotice time.Duration
	// Expected is how long a maintenance is expected to hold its server where it does not say.
	Expected time.Duration
}

// Facts are what the checks of a policy read of one server.
type Facts struct {
	State, Power, Health string
	Labels               map[string]string
	Conditions           map[string]string
	ClaimLabels          map[string]string
	ClaimAnnotations     map[string]string
}
