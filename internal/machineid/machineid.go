// SPDX-License-Identifier: Apache-2.0

// Package machineid decides whether an agent that names a machine's UUID runs on that machine. A UUID is no proof:
// boards of one batch may share one, and a boot is served to each machine that shows it.
package machineid

import (
	"bytes"
	"encoding/hex"
	"net"
	"slices"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// Serial is a serial number by which machines can be told apart; empty for what firmware writes where a factory wrote
// nothing.
func Serial(raw string) string {
	text := strings.ToUpper(strings.TrimSpace(raw))
	if placeholders[text] || strings.Trim(text, text[:min(1, len(text))]) == "" { // one character all over
		return ""
	}
	if digits := strings.Trim(text, "."); digits == "" || isCount(digits) {
		return ""
	}
	return text
}

// placeholders are the texts that vendors leave in a field without a serial number, in capitals.
var placeholders = map[string]bool{
	"": true, "NONE": true, "NULL": true, "N/A": true, "NA": true, "UNKNOWN": true, "NOT AVAILABLE": true,
	"NOT SPECIFIED":  true,
	"NOT APPLICABLE": true, "NOT PROVIDED": true, "NOT SETTABLE": true, "NO ASSET TAG": true, "INVALID": true,
	"EMPTY": true, "OEM": true,
	"DEFAULT": true, "DEFAULT STRING": true, "TO BE FILLED BY O.E.M.": true, "TO BE FILLED BY OEM": true, "TBD": true,
	"O.E.M.": true, "SYSTEM SERIAL NUMBER": true, "BASE BOARD SERIAL NUMBER": true, "BOARD SERIAL NUMBER": true,
	"CHASSIS SERIAL NUMBER": true,
	"SERIAL NUMBER":         true, "SERIAL": true, "SERNUM": true, "SN": true, "EVAL": true, "TEST": true, "QEMU": true,
	"UNDEFINED":    true,
	"EMPTY STRING": true, "CHANGE ME": true, "XXXXXXXXXX": true, "123456789": true, "1234567890": true, "12345678": true,
}

// isCount says that a text counts the digits up, as sample firmware does: 0123456789, 01234567890123456789AB.
func isCount(text string) bool {
	const count = "0123456789012345678901234567890123456789"
	text = strings.TrimRight(text, "ABCDEF")
	return len(text) >= 4 && strings.HasPrefix(count, text)
}

var separators = strings.NewReplacer(":", "", "-", "", ".", "", " ", "")

// Address is a physical address, lower case with colons; empty for a group address, one that is administered locally,
// and other text.
func Address(raw string) string {
	octets, err := hex.DecodeString(separators.Replace(raw))
	if err != nil || len(octets) != 6 || octets[0]&0x03 != 0 {
		return ""
	}
	if zero := [6]byte{}; bytes.Equal(octets, zero[:]) {
		return ""
	}
	return net.HardwareAddr(octets).String()
}

// Addresses are the physical addresses among texts, each once, sorted.
func Addresses(raw ...string) []string { return cleaned(Address, raw) }

// Serials are the serial numbers among texts by which machines can be told apart, each once, sorted.
func Serials(raw ...string) []string { return cleaned(Serial, raw) }

// ShownSerials are the serial numbers that a BMC shows of a system. The SKU of a Dell is its service tag, which is
// the serial number in the DMI table; of any other make the SKU names the model.
func ShownSerials(manufacturer, serial, sku string) []string {
	if strings.Contains(strings.ToLower(manufacturer), "dell") {
		return Serials(serial, sku)
	}
	return Serials(serial)
}

func cleaned(clean func(string) string, raw []string) []string {
	var list []string
	for _, text := range raw {
		if text = clean(text); text != "" {
			list = append(list, text)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Reported is what an agent reports of its machine.
func Reported(data *policyv1alpha1.ProbeData) policyv1alpha1.ReportedIdentity {
	var raw []string
	for _, n := range data.NetworkInterfaces {
		raw = append(raw, n.MACAddress)
	}
	for i := range data.NICs {
		raw = append(raw, data.NICs[i].MAC)
	}
	return policyv1alpha1.ReportedIdentity{
		SystemSerial:      Serial(data.SystemInfo.SystemInformation.SerialNumber),
		BoardSerial:       Serial(data.SystemInfo.BoardInformation.SerialNumber),
		PhysicalAddresses: Addresses(raw...),
	}
}

// Of is the report of an inventory; false where it has none that showed a token.
func Of(inventory *policyv1alpha1.ServerInventory) (policyv1alpha1.ReportedIdentity, bool) {
	if inventory == nil || inventory.Report == nil || inventory.Report.Unauthenticated {
		return policyv1alpha1.ReportedIdentity{}, false
	}
	return Reported(&inventory.Report.Data), true
}

// Keys are the words by which machines are looked up that may share something with another.
func Keys(r policyv1alpha1.ReportedIdentity) []string {
	var keys []string
	for _, serial := range Serials(r.SystemSerial, r.BoardSerial) {
		keys = append(keys, "serial "+serial)
	}
	for _, address := range r.PhysicalAddresses {
		keys = append(keys, "address "+address)
	}
	return keys
}

// KeysOf are the words by which the machine of an inventory is found: what its BMC shows, and what it reported.
func KeysOf(inventory *policyv1alpha1.ServerInventory) []string {
	var keys []string
	if inventory.Identity != nil && inventory.Identity.BMC != nil {
		for _, serial := range Serials(inventory.Identity.BMC.Serials...) {
			keys = append(keys, "serial "+serial)
		}
		for _, address := range Addresses(inventory.Identity.BMC.PhysicalAddresses...) {
			keys = append(keys, "address "+address)
		}
	}
	if inventory.Report != nil {
		keys = append(keys, Keys(Reported(&inventory.Report.Data))...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
