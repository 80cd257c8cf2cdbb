// SPDX-License-Identifier: Apache-2.0

package support

import (
	"bytes"
	"fmt"
)

// holdsNone checks that no text holds one of the values, which are secrets that the user may read. It names the file, never the value.
func holdsNone(files map[string][]byte, values [][]byte) error {
	for name, text := range files {
		for _, value := range values {
			if len(value) >= minSecret && bytes.Contains(text, value) {
				return fmt.Errorf("%s holds the value of a Secret or BMCSecret; the bundle is not written", name)
			}
		}
	}
	return nil
}

// minSecret is the length below which a value would be found by chance.
const minSecret = 6
