// SPDX-License-Identifier: Apache-2.0

package power

import (
	"cmp"
	"fmt"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/redfish"
)

// Reasons of pending and failed power effects.
const (
	WaitsForReading = "WaitsForReading"
	WaitsForPower   = "WaitsForPower"
	WaitsForBoot    = "WaitsForBoot"
	RequestFailed   = v1alpha1.ReasonRequestFailed
	// OverrideIgnored: the BMC took the boot override of a power-on and does not show it, so the machine stays off.
	OverrideIgnored = v1alpha1.ReasonBootOverrideIgnored
)

// Reading is the last word of the BMC, as far as a power request relies on it.
type Reading struct {
	// Lacks says what is missing to ask the BMC at all; empty where nothing is.
	Lacks string
	// Tried says that a read has ended, and Failure what the last one failed with; empty where it succeeded.
	Tried   bool
	Failure string
	// Same says that the BMC answers for this server's own machine.
	Same  bool
	Power redfish.PowerState
	// Begun is when the reading was asked for.
	Begun time.Time
	// Fresh says that the reading is of this machine, recent, and begun after the last request had its time to show.
	Fresh bool
}

// Reachable says that the BMC answered.
func (r Reading) Reachable() bool { return r.Tried && r.Failure == "" }

// Silent is what is waited for where the BMC cannot be asked or does not answer; empty where it answers.
func (r Reading) Silent() string {
	if r.Lacks == "" && r.Failure != "" {
		return "the BMC, which does not answer: " + r.Failure
	}
	return r.Lacks
}

// Shows says that the machine is seen in a power state. Unknown is not Off.
func (r Reading) Shows(power redfish.PowerState) bool {
	return r.Same && r.Reachable() && r.Power == power
}

// Known says whether a power request may rely on the reading, and what it waits for where it may not. poll says that the
// wait is for the BMC to show something; its progress has no time then.
func (r Reading) Known() (p loop.Progress, poll, ok bool) {
	switch silent := r.Silent(); {
	case silent != "":
		return loop.Waiting(WaitsForReading, silent, 0), false, false
	case r.Tried && !r.Same:
		return loop.Waiting(WaitsForReading, "the BMC to answer for this server's own machine", 0), true, false
	case r.Tried && r.Power != redfish.PowerOn && r.Power != redfish.PowerOff: // said of an old reading too, so that it stays the same
		return loop.Waiting(WaitsForPower, fmt.Sprintf("the BMC to say whether the machine is on; its power is %s",
			cmp.Or(r.Power, redfish.PowerUnknown)), 0), true, false
	case !r.Fresh:
		return loop.Waiting(WaitsForReading, "a fresh reading of the BMC", 0), false, false
	}
	return loop.Progress{}, false, true
}
