// SPDX-License-Identifier: Apache-2.0

// Package lldp listens for the neighbours of a machine's ports by LLDP (IEEE 802.1AB). It sends nothing.
package lldp

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// The types of TLVs that are read, and their subtypes.
const (
	tlvEnd, tlvChassis, tlvPort, tlvTTL                          = 0, 1, 2, 3
	tlvPortDescription, tlvSystemName, tlvSystemDescription      = 4, 5, 6
	tlvCapabilities, tlvManagement, tlvOrganization              = 7, 8, 127
	chassisMAC, chassisAddress, portMAC, portAddress             = 4, 5, 3, 4
	addressIPv4, addressIPv6                                byte = 1, 2
)

// portVLAN begins the TLV of IEEE 802.1 that names the port's VLAN.
const portVLAN = "\x00\x80\xc2\x01"

// roles are the bits of the capabilities, from the lowest.
var roles = []string{
	"other", "repeater", "bridge", "wlan-access-point", "router", "telephone", "docsis", "station", "c-vlan", "s-vlan", "two-port-relay",
}

// Parse reads one LLDPDU: what follows the EtherType of a frame. It returns the neighbour and how long what it says is valid; zero
// means that the neighbour goes.
func Parse(pdu []byte) (n policyv1alpha1.LLDPNeighbor, valid time.Duration, err error) {
	seen := map[byte]bool{}
	for len(pdu) >= 2 {
		header := binary.BigEndian.Uint16(pdu)
		kind, length := byte(header>>9), int(header&0x1ff)
		if length > len(pdu)-2 {
			return n, 0, fmt.Errorf("TLV of type %d: %d bytes, but the frame holds %d more", kind, length, len(pdu)-2)
		}
		value := pdu[2 : 2+length]
		pdu = pdu[2+length:]
		if kind == tlvEnd {
			break
		}
		if kind == tlvTTL && length >= 2 {
			valid = time.Duration(binary.BigEndian.Uint16(value)) * time.Second
		}
		seen[kind] = true
		read(&n, kind, value)
	}
	if !seen[tlvChassis] || !seen[tlvPort] || !seen[tlvTTL] {
		return n, 0, errors.New("a TLV of chassis, port or time to live is missing")
	}
	return n, valid, nil
}

// read takes what one TLV says.
func read(n *policyv1alpha1.LLDPNeighbor, kind byte, value []byte) {
	switch kind {
	case tlvChassis:
		n.ChassisID = identifier(value, chassisMAC, chassisAddress)
	case tlvPort:
		n.PortID = identifier(value, portMAC, portAddress)
	case tlvPortDescription:
		n.PortDescription = text(value)
	case tlvSystemName:
		n.SystemName = text(value)
	case tlvSystemDescription:
		n.SystemDescription = text(value)
	case tlvCapabilities:
		n.Capabilities = capabilities(value)
	case tlvManagement:
		if n.MgmtIP == "" && len(value) >= 2 && int(value[0]) < len(value) && value[0] > 0 {
			n.MgmtIP = address(value[1 : 1+value[0]])
		}
	case tlvOrganization:
		if vlan, found := strings.CutPrefix(string(value), portVLAN); found && len(vlan) >= 2 {
			n.VLANID = strconv.Itoa(int(binary.BigEndian.Uint16([]byte(vlan))))
		}
	}
}

// identifier words the identifier of a chassis or port, whose first byte is its subtype.
func identifier(value []byte, mac, network byte) string {
	if len(value) < 2 {
		return ""
	}
	switch kind, id := value[0], value[1:]; {
	case kind == mac && len(id) == 6:
		return net.HardwareAddr(id).String()
	case kind == network && address(id) != "":
		return address(id)
	default:
		return text(id)
	}
}

// address words an IP address, whose first byte is its family; empty for another family.
func address(value []byte) string {
	if len(value) == 0 || (value[0] != addressIPv4 && value[0] != addressIPv6) {
		return ""
	}
	ip, valid := netip.AddrFromSlice(value[1:])
	if !valid || ip.Is4() != (value[0] == addressIPv4) {
		return ""
	}
	return ip.String()
}

// capabilities names those that are enabled: the second of two words.
func capabilities(value []byte) (names []string) {
	if len(value) < 4 {
		return nil
	}
	enabled := binary.BigEndian.Uint16(value[2:])
	for bit, role := range roles {
		if enabled&(1<<bit) != 0 {
			names = append(names, role)
		}
	}
	return names
}

// text gives printable text as it is, and other bytes in hex.
func text(value []byte) string {
	word := strings.TrimRight(string(value), "\x00")
	printable := func(r rune) bool { return unicode.IsPrint(r) || unicode.IsSpace(r) }
	if !utf8.ValidString(word) || strings.ContainsFunc(word, func(r rune) bool { return !printable(r) }) {
		return hex.EncodeToString(value)
	}
	return strings.TrimSpace(word)
}
