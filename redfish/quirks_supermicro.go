// SPDX-License-Identifier: Apache-2.0

package redfish

// Evidence: the 821GE lists /Systems/1/EthernetInterfaces/ToManager among the host's interfaces. It is the USB network
// card towards the BMC (169.254.3.1), and its MAC address is locally administered.
var supermicroQuirk = quirk{
	vendor:   "Supermicro",
	hostNICs: []string{"ToManager"},
}
