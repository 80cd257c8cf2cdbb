// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"crypto/rand"
	"encoding/hex"
)

// KeyHeader is the header of a request in which an agent shows the key that it made when it started.
const KeyHeader = "Metalprobe-Key"

// keyBytes is the length of a key.
const keyBytes = 32

// NewKey makes the key of an agent, 64 hex digits. An agent makes one each time the machine boots, keeps it until the machine goes
// off, and sends it with every request: the registry binds the lifecycle entry to the first one that it sees.
func NewKey() string {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // it never fails
	return hex.EncodeToString(key)
}

// ValidKey says that a text is a key.
func ValidKey(text string) bool {
	decoded, err := hex.DecodeString(text)
	return err == nil && len(decoded) == keyBytes
}
