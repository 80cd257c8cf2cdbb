// SPDX-License-Identifier: Apache-2.0

// Package uuids turns the byte order of system UUIDs. The package of the same name under api does so for everybody else:
// a port to hardware imports nothing of the rest.
package uuids

import "strings"

// Swap turns the bytes of the first three groups of a UUID with dashes, as SMBIOS tables before 2.6 and some firmware do;
// other text is returned as it is.
func Swap(uuid string) string {
	groups := strings.Split(uuid, "-")
	if len(groups) != 5 {
		return uuid
	}
	for i, length := range []int{8, 4, 4, 4, 12} {
		if len(groups[i]) != length || strings.Trim(groups[i], "0123456789abcdefABCDEF") != "" {
			return uuid
		}
	}
	for i := range 3 {
		groups[i] = turned(groups[i])
	}
	return strings.Join(groups, "-")
}

// turned reverses the order of the bytes that an even number of digits spells.
func turned(digits string) string {
	var out strings.Builder
	for i := len(digits) - 2; i >= 0; i -= 2 {
		out.WriteString(digits[i : i+2])
	}
	return out.String()
}
