// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"fmt"
	"strings"
)

// NormalizeUUID gives the lower-case form with hyphens of a system UUID.
// It refuses everything that is not 8-4-4-4-12 hexadecimal digits.
func NormalizeUUID(text string) (string, error) {
	const form = "00000000-0000-0000-0000-000000000000"
	uuid := strings.ToLower(text)
	bad := len(uuid) != len(form)
	for i := 0; !bad && i < len(form); i++ {
		if form[i] == '-' {
			bad = uuid[i] != '-'
			continue
		}
		bad = (uuid[i] < '0' || uuid[i] > '9') && (uuid[i] < 'a' || uuid[i] > 'f')
	}
	if bad {
		return "", fmt.Errorf("system UUID %.64q: want 8-4-4-4-12 hexadecimal digits, as in /sys/class/dmi/id/product_uuid", text)
	}
	return uuid, nil
}

// SwapUUID gives the other byte order of the first three groups. Firmware stores them little-endian since SMBIOS 2.6,
// and BMCs and operating systems do not agree on who turns them round. uuid must be normalised.
func SwapUUID(uuid string) string {
	if len(uuid) != 36 {
		return uuid
	}
	swap := func(group string) string {
		var swapped strings.Builder
		for i := len(group) - 2; i >= 0; i -= 2 {
			swapped.WriteString(group[i : i+2])
		}
		return swapped.String()
	}
	return swap(uuid[0:8]) + "-" + swap(uuid[9:13]) + "-" + swap(uuid[14:18]) + uuid[18:]
}

// SameUUID compares two system UUIDs in any case and in both byte orders. What is no UUID equals nothing.
func SameUUID(a, b string) bool {
	first, err := NormalizeUUID(a)
	if err != nil {
		return false
	}
	second, err := NormalizeUUID(b)
	if err != nil {
		return false
	}
	return first == second || first == SwapUUID(second)
}

// PlausibleUUID tells a UUID that identifies a machine from what vendors leave in an empty field:
// text that is no UUID, all zeros or all ones.
func PlausibleUUID(text string) bool {
	uuid, err := NormalizeUUID(text)
	return err == nil && strings.Trim(uuid, "0-") != "" && strings.Trim(uuid, "f-") != ""
}
