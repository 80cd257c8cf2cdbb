// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"slices"
	"strings"
)

// What one vendor's BMCs do beside the standard, as data. A quirk is applied where its own marks appear and not by the
// vendor's name, because boards travel: an NVIDIA baseboard sits in machines of any maker. Deviations that show as an
// error status are learned from it instead (see habits).

// trays are prefixes of ids in the systems collection that are no hosts.
// NVIDIA: DGX H100 and HGX machines of other makers list HGX_Baseboard_0 beside the host in /redfish/v1/Systems. It has
// no UUID, no boot and no Reset action. Its id decides, because a PowerState beside it must not make it a host.
var trays = []string{"hgx_"}

// bmcNICs are ids of interfaces that lead from the host to its BMC.
// Supermicro: the 821GE lists /Systems/1/EthernetInterfaces/ToManager among the host's interfaces. It is the USB network
// card towards the BMC (169.254.3.1), and its MAC address is locally administered.
var bmcNICs = []string{"ToManager"}

// resetWords are further names for an action, used where the BMC offers them and not the standard one.
// Node controllers of Cray EX offer On, Off and ForceOff only. Off is not in the ResetType enumeration; beside ForceOff
// we read it as the gentle one. Where only Off is offered it is the only way to switch off at all.
var resetWords = map[PowerAction]string{ActionGracefulShutdown: "Off", ActionForceOff: "Off"}

// wholeSums are roll-ups of a whole machine, lower case: they repeat what a part says, and name none.
// Dell: newer iDRACs show SystemHealthRollupStatus in Oem.Dell.DellSystem beside the roll-ups of the parts, and
// DCIM_SystemView has RollupStatus and PrimaryStatus. CurrentRollupStatus is a part: the electric current.
var wholeSums = []string{"", "system", "systemhealth"}

// cdTargets are further names of the boot target Cd, the surest one first, used where a BMC offers them and not Cd.
// Supermicro X10 and X11 offer CD/DVD, UsbCd, UefiCd and UefiUsbCd. Virtual media is a USB drive there, so that sushy
// boots it as UsbCd, and redhat-performance/jetlag pull request 152 as UefiUsbCd in mode UEFI.
var cdTargets = map[BootMode][]string{
	BootUEFI:   {"UefiUsbCd", "UsbCd", "UefiCd", "CD/DVD"},
	BootLegacy: {"UsbCd", "CD/DVD"},
}

// usbCD is what Supermicro boots virtual media as, also where Cd is offered beside it. On X11, X12 and later boards Cd is
// accepted and the machine boots its disk: sushy (resources/system/system.py) takes UsbCd for all of the make. It knows one
// exception, cdModels, lower case. The vendor's name decides, because no property of the BMC tells.
const usbCD = "UsbCd"

var cdModels = []string{"ars-111gl-nhr"}

// bootWord is what a machine's BMC calls a boot target; target itself where it offers that, or nothing for it.
func bootWord(target string, mode BootMode, offered []string, machine Identity) string {
	if target != targetCD {
		return target
	}
	if slices.Contains(offered, target) {
		usb := strings.EqualFold(strings.TrimSpace(machine.Manufacturer), "Supermicro") && slices.Contains(offered, usbCD) &&
			!slices.Contains(cdModels, strings.ToLower(strings.TrimSpace(machine.Model)))
		if usb {
			return usbCD
		}
		return target
	}
	for _, word := range cdTargets[mode] {
		if at := slices.IndexFunc(offered, func(offer string) bool { return strings.EqualFold(word, offer) }); at >= 0 {
			return offered[at]
		}
	}
	return target
}

// isTray reports whether a member of the systems collection is a GPU tray or the like.
func isTray(uri string) bool {
	id := strings.ToLower(lastSegment(uri))
	return slices.ContainsFunc(trays, func(prefix string) bool { return strings.HasPrefix(id, prefix) })
}

func leadsToBMC(id string) bool {
	return slices.ContainsFunc(bmcNICs, func(name string) bool { return strings.EqualFold(id, name) })
}
