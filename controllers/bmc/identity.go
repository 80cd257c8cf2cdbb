// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"regexp"
	"strings"
)

// usableUUID is what the name of a ServerInventory allows.
var usableUUID = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]{0,62}[a-z0-9])?$`)

// sameURI compares links as BMCs write them: case and a trailing slash do not matter.
func sameURI(a, b string) bool {
	return strings.EqualFold(strings.TrimRight(a, "/"), strings.TrimRight(b, "/"))
}
