// SPDX-License-Identifier: Apache-2.0

package redfish

import "strings"

// quirk is what one vendor's BMCs do beside the standard, as data. A quirk is applied where its own marks appear and not
// by the vendor's name, because boards travel: an NVIDIA baseboard sits in machines of any maker. Deviations that show
// as an error status are learned from it instead (see habits).
type quirk struct {
	vendor string
	// trays are prefixes of ids in the systems collection that are no hosts.
	trays []string
	// hostNICs are ids of interfaces that lead from the host to its BMC.
	hostNICs []string
	// resetWords are further names for an action, used where the BMC offers them and not the standard one.
	resetWords map[PowerAction][]string
}

var quirks = []quirk{nvidiaQuirk, supermicroQuirk, crayQuirk}

// isTray reports whether a member of the systems collection is a GPU tray or the like.
func isTray(uri string) bool {
	for _, q := range quirks {
		for _, prefix := range q.trays {
			if strings.HasPrefix(strings.ToLower(lastSegment(uri)), prefix) {
				return true
			}
		}
	}
	return false
}

func isHostNIC(id string) bool {
	for _, q := range quirks {
		for _, name := range q.hostNICs {
			if strings.EqualFold(id, name) {
				return true
			}
		}
	}
	return false
}

// resetWords returns the words for an action, the standard one first.
func resetWords(action PowerAction) []string {
	out := []string{string(action)}
	for _, q := range quirks {
		out = append(out, q.resetWords[action]...)
	}
	return out
}
