// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"strings"

	"github.com/metalaw/metalaw/internal/uuids"
)

// SameSystem reports whether got is the system that want names. UUIDs are compared in both byte orders of their first
// three groups, because a BMC and the DMI table of its host often disagree about it. Where want has no UUID, the serial
// numbers decide. Where want has neither, nothing can be proven and the answer is false.
func SameSystem(want, got Identity) bool {
	wantUUID, gotUUID := cleanUUID(want.UUID), cleanUUID(got.UUID)
	if wantUUID != "" {
		return gotUUID != "" && (wantUUID == gotUUID || uuids.Swap(wantUUID) == gotUUID)
	}
	wantSerial, gotSerial := cleanSerial(want.SerialNumber), cleanSerial(got.SerialNumber)
	return wantSerial != "" && strings.EqualFold(wantSerial, gotSerial)
}

var uuidDigits = strings.NewReplacer("urn:uuid:", "", "{", "", "}", "", "-", "")

// cleanUUID brings a UUID to lower case with dashes; placeholders become empty. Text that is not a UUID is kept in
// lower case, because it still tells systems apart.
func cleanUUID(raw string) string {
	text := strings.ToLower(strings.TrimSpace(raw))
	digits := uuidDigits.Replace(text)
	if len(digits) == 32 && strings.Trim(digits, "0123456789abcdef") == "" {
		text = digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
	}
	if uuids.Shared(text) || placeholder(text) {
		return ""
	}
	return text
}

// cleanSerial trims a serial number; placeholders become empty.
func cleanSerial(raw string) string {
	text := strings.TrimSpace(raw)
	if placeholder(strings.ToLower(text)) || strings.Trim(text, "0") == "" {
		return ""
	}
	return text
}

// placeholder knows what firmware writes where a factory wrote nothing (lower case).
func placeholder(text string) bool {
	switch text {
	case "", "none", "null", "n/a", "na", "unknown", "not available", "not specified", "not applicable", "default string",
		"to be filled by o.e.m.", "to be filled by oem", "system serial number", "0123456789", "123456789", "xxxxxxxxxx":
		return true
	}
	return false
}
