// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"fmt"
	"regexp"
	"strings"
)

var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// NormalizeUUID gives the lower-case form with hyphens of a system UUID.
// It refuses everything that is not 8-4-4-4-12 hexadecimal digits.
func NormalizeUUID(text string) (string, error) {
	uuid := strings.ToLower(text)
	if !uuidForm.MatchString(uuid) {
		return "", fmt.Errorf("system UUID %.64q: want 8-4-4-4-12 hexadecimal digits, as in /sys/class/dmi/id/product_uuid", text)
	}
	return uuid, nil
}
