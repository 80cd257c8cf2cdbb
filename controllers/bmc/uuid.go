// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"regexp"
	"strings"
)

// usableUUID is what the name of a ServerInventory allows.
var usableUUID = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]{0,62}[a-z0-9])?$`)

// spellings returns a lower-case UUID and, where there is one, the same with the bytes of its first three groups in the
// other order: firmwares disagree about it, and one machine must not become two servers.
func spellings(uuid string) []string {
	if other := otherOrder(uuid); other != uuid {
		return []string{uuid, other}
	}
	return []string{uuid}
}

func otherOrder(uuid string) string {
	groups := strings.Split(uuid, "-")
	if len(groups) != 5 || len(uuid) != 36 || len(groups[0]) != 8 || len(groups[1]) != 4 || len(groups[2]) != 4 {
		return uuid
	}
	for i := range 3 {
		groups[i] = turned(groups[i])
	}
	return strings.Join(groups, "-")
}

func turned(hex string) string {
	var out strings.Builder
	for i := len(hex) - 2; i >= 0; i -= 2 {
		out.WriteString(hex[i : i+2])
	}
	return out.String()
}

// sameURI compares links as BMCs write them: case and a trailing slash do not matter.
func sameURI(a, b string) bool {
	return strings.EqualFold(strings.TrimRight(a, "/"), strings.TrimRight(b, "/"))
}
