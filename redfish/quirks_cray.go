// SPDX-License-Identifier: Apache-2.0

package redfish

// Evidence: node controllers of Cray EX offer On, Off and ForceOff only. Off is not in the ResetType enumeration; beside
// ForceOff we read it as the gentle one. Where only Off is offered it is the only way to switch off at all.
var crayQuirk = quirk{
	vendor: "Cray",
	resetWords: map[PowerAction][]string{
		ActionGracefulShutdown: {"Off"},
		ActionForceOff:         {"Off"},
	},
}
