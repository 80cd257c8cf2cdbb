// SPDX-License-Identifier: Apache-2.0

package redfish

// Evidence: DGX H100 and HGX machines of other makers list HGX_Baseboard_0 beside the host in /redfish/v1/Systems. It has
// no UUID, no boot and no Reset action. Its id decides, because a PowerState beside it must not make it a host.
var nvidiaQuirk = quirk{
	vendor: "NVIDIA",
	trays:  []string{"hgx_"},
}
