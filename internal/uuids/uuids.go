// SPDX-License-Identifier: Apache-2.0

// Package uuids knows how the system UUID of one machine may be spelled. Firmware stores the first three groups
// little-endian since SMBIOS 2.6, and BMCs, firmware tables and operating systems do not agree on who turns them round.
package uuids

import (
	"slices"
	"strings"
)

// Spellings are the UUIDs that name the same machine, in lower case: the one given, and then the same in the other byte
// order. There is one where the text is no UUID with dashes or reads the same in both orders, and none where it is empty.
// The ServerInventory of a machine is named by one of them.
func Spellings(systemUUID string) []string {
	given := strings.ToLower(systemUUID)
	if given == "" {
		return nil
	}
	return slices.Compact([]string{given, Swap(given)})
}

// Same compares two system UUIDs in any case and in both byte orders. Text that is no UUID is the same as itself alone,
// and the empty text is the same as nothing.
func Same(a, b string) bool {
	return slices.Contains(Spellings(a), strings.ToLower(b))
}

// shared are identities that whole product lines carry, so they identify nothing.
var shared = map[string]bool{
	"00000000-0000-0000-0000-000000000000": true,
	"ffffffff-ffff-ffff-ffff-ffffffffffff": true,
	// The reference BIOS default of AMI boards that were never given a UUID.
	"03000200-0400-0500-0006-000700080009": true,
}

// Shared says that a lower-case UUID is what firmware shows that was never given one of its own, in either byte order.
func Shared(uuid string) bool { return shared[uuid] || shared[Swap(uuid)] }

// Swap turns the bytes of the first three groups of a UUID with dashes; other text is returned as it is.
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
	bytes := slices.Collect(slices.Chunk([]byte(digits), 2))
	slices.Reverse(bytes)
	return string(slices.Concat(bytes...))
}
