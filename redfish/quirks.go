// SPDX-License-Identifier: Apache-2.0

package redfish

import "strings"

// quirk is what one vendor's BMCs do beside the standard, as data. A quirk is applied where its own marks appear and not
// by the vendor's name, because boards travel: an NVIDIA baseboard sits in machines of any maker. Deviations that show
// as an error status are learned from it instead (see habits).
type quirk struct {
	// trays are prefixes of ids in the systems collection that are no hosts.
	trays []string
	// hostNICs are ids of interfaces that lead from the host to its BMC.
	hostNICs []string
	// resetWords are further names for an action, used where the BMC offers them and not the standard one.
	resetWords map[PowerAction][]string
}

var quirks = []quirk{
	// NVIDIA: DGX H100 and HGX machines of other makers list HGX_Baseboard_0 beside the host in /redfish/v1/Systems. It has
	// no UUID, no boot and no Reset action. Its id decides, because a PowerState beside it must not make it a host.
	{trays: []string{"hgx_"}},
	// Supermicro: the 821GE lists /Systems/1/EthernetInterfaces/ToManager among the host's interfaces. It is the USB network
	// card towards the BMC (169.254.3.1), and its MAC address is locally administered.
	{hostNICs: []string{"ToManager"}},
	// Node controllers of Cray EX offer On, Off and ForceOff only. Off is not in the ResetType enumeration; beside ForceOff
	// we read it as the gentle one. Where only Off is offered it is the only way to switch off at all.
	{resetWords: map[PowerAction][]string{ActionGracefulShutdown: {"Off"}, ActionForceOff: {"Off"}}},
}

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
