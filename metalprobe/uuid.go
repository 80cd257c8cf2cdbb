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
