// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
)

func TestASecretIsFoundWhereverItStandsInBase64(t *testing.T) {
	const word = "wS-right-7f3c9a1e"
	for _, before := range []string{"", "k:", "ke:", "kee:", "keep:", "keeper:"} {
		for _, after := range []string{"", "!", "!!", "!!!"} {
			text := base64.StdEncoding.EncodeToString([]byte(before + word + after))
			if !slices.ContainsFunc(encodings(word), func(e string) bool { return strings.Contains(text, e) }) {
				t.Errorf("%q is not found in the base64 of %q", word, before+word+after)
			}
		}
	}
}
