// SPDX-License-Identifier: Apache-2.0

// Package origin says whether a request comes from the machine that it names, by its address and by the MAC address in it.
package origin

import (
	"net"
	"net/netip"
	"slices"
)

// Verdict says from where a request comes.
type Verdict string

const (
	// Machine is the machine itself.
	Machine Verdict = "Machine"
	// Unknown means that nothing is known of the machine that the address of the request could be held against.
	Unknown Verdict = "Unknown"
	// Another is not the machine, by all that is known of it.
	Another Verdict = "Another"
)

// Known is what is known of the network interfaces of a machine. The zero value is nothing.
type Known struct {
	addresses []netip.Addr
	macs      []string
}

// noMAC is what a loopback interface has.
const noMAC = "00:00:00:00:00:00"

// Add notes an interface. A text that is no address says nothing, and neither does a loopback interface.
func (k *Known) Add(mac string, addresses ...string) {
	if mac == noMAC {
		return
	}
	if parsed, err := net.ParseMAC(mac); err == nil && len(parsed) == 6 {
		k.macs = append(k.macs, parsed.String())
	}
	for _, text := range addresses {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			text = prefix.Addr().String()
		}
		if address, err := netip.ParseAddr(text); err == nil {
			k.addresses = append(k.addresses, plain(address))
		}
	}
}

// Judge holds the address of a request against what is known of the machine. An address that the machine has proves it, and so does an
// IPv6 address that was made of a MAC address of the machine. Link-local addresses prove, but their absence says nothing.
func Judge(from netip.Addr, known Known) Verdict {
	from = plain(from)
	mac, shown := macIn(from)
	switch {
	case !from.IsValid():
		return Unknown
	case slices.Contains(known.addresses, from), shown && slices.Contains(known.macs, mac):
		return Machine
	case shown && len(known.macs) > 0, slices.ContainsFunc(known.addresses, routed):
		return Another
	}
	return Unknown
}

func plain(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }

// routed tells the addresses by which a machine reaches others from those of one link.
func routed(address netip.Addr) bool {
	return !address.IsUnspecified() && !address.IsLinkLocalUnicast() && !address.IsMulticast()
}

// macIn gives the MAC address of which an IPv6 address was made (modified EUI-64).
func macIn(address netip.Addr) (mac string, shown bool) {
	if !address.Is6() {
		return "", false
	}
	b := address.As16()
	if b[11] != 0xff || b[12] != 0xfe {
		return "", false
	}
	return net.HardwareAddr{b[8] ^ 0x02, b[9], b[10], b[13], b[14], b[15]}.String(), true
}
