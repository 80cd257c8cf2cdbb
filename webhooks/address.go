// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// addressErrors refuses an address at which no single device answers. Whether it is an address at all is for the CRD to
// say. Loopback addresses are those of emulated BMCs.
func addressErrors(path *field.Path, ip string) field.ErrorList {
	address, err := netip.ParseAddr(ip)
	if err != nil {
		return nil
	}
	var what string
	switch address = address.Unmap(); {
	case address.IsUnspecified():
		what = "is the unspecified address"
	case address.IsMulticast():
		what = "is a multicast address"
	case address == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		what = "is the broadcast address"
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(path, ip, "it "+what+", at which no single device answers; write the address that the device has")}
}
