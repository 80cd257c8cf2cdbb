// SPDX-License-Identifier: Apache-2.0

package support

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
)

// hidden stands for what was taken out.
const hidden = "[hidden]"

// secrets match what may hold a secret; the first group is kept.
var secrets = []*regexp.Regexp{
	regexp.MustCompile(`(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?-----END [A-Z ]*PRIVATE KEY-----`),
	regexp.MustCompile(`(?i)((?:authorization|x-auth-token|cookie)["']?\s*[:=]\s*["']?(?:bearer |basic )?)[^\s"',}]+`),
	regexp.MustCompile(`(?i)(["']?[a-z_-]*(?:password|passwd|secret|token|api[_-]?key)["']?\s*[:=]\s*["']?)[^\s"',}]+`),
	regexp.MustCompile(`(?i)(bearer )[A-Za-z0-9._~+/=-]{8,}`),
	regexp.MustCompile(`([a-z][a-z0-9+.-]*://)[^/\s:@]+:[^/\s@]+@`),
	regexp.MustCompile(`(data:[a-z/+.-]*;base64,)[A-Za-z0-9+/=]{16,}`),
}

// harmless are names of fields that match above and hold no secret: names of objects and hashes.
var harmless = regexp.MustCompile(`(?i)^["']?(?:[a-z]*secretref|[a-z]*secretname|ignitionsecretref|bmcsecretref|tokenhash|secret)["']?\s*[:=]\s*["']?$`)

// redact takes out of a text what may be a secret, and counts it.
func redact(text []byte) ([]byte, int) {
	count := 0
	for _, pattern := range secrets {
		text = pattern.ReplaceAllFunc(text, func(found []byte) []byte {
			kept := pattern.FindSubmatch(found)[1]
			if harmless.Match(kept) || bytes.HasSuffix(found, []byte(hidden)) {
				return found
			}
			count++
			return append(slices.Clone(kept), hidden...)
		})
	}
	return text, count
}

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
