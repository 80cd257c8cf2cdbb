// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"crypto/sha256"
	"encoding/hex"
)

// HashToken gives the form in which an agent's token is stored in status.lifecycle.credential: hex SHA-256.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
