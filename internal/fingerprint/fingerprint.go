// SPDX-License-Identifier: Apache-2.0

// Package fingerprint reads and compares SHA-256 fingerprints of certificates.
package fingerprint

import (
	"encoding/hex"
	"strings"
)

// Size is the length of a fingerprint in its one spelling: lower-case hexadecimal digits.
const Size = 64

// Parse returns the one spelling of a SHA-256 fingerprint: 64 lower-case hexadecimal digits. It reads upper case, colons
// between bytes (as openssl prints) and a leading "sha256:". It returns "" for any other text.
func Parse(text string) string {
	text = strings.ToLower(strings.TrimSpace(text))
	text = strings.TrimPrefix(strings.TrimPrefix(text, "sha256:"), "sha256 fingerprint=")
	if strings.Contains(text, ":") {
		parts := strings.Split(text, ":")
		for _, part := range parts {
			if len(part) != 2 {
				return ""
			}
		}
		text = strings.Join(parts, "")
	}
	if raw, err := hex.DecodeString(text); err != nil || len(raw) != Size/2 {
		return ""
	}
	return text
}
