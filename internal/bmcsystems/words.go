// SPDX-License-Identifier: Apache-2.0

package bmcsystems

import (
	"fmt"
	"strings"
)

// Words name the serial number and the MAC address of a machine for a message. What is empty is left out.
func Words(serial, mac string) string {
	var parts []string
	if serial != "" {
		parts = append(parts, fmt.Sprintf("serial %q", serial))
	}
	if mac != "" {
		parts = append(parts, fmt.Sprintf("mac %q", mac))
	}
	if len(parts) == 0 {
		return "neither serial nor mac"
	}
	return strings.Join(parts, " and ")
}
