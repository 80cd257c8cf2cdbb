// SPDX-License-Identifier: Apache-2.0

package diag

import (
	"strings"
	"unicode/utf8"
)

// dots end a text that goes on.
const dots = "..."

// Shortened cuts a text down to most bytes, without breaking a character; three dots at its end say so.
func Shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:max(most-len(dots), 0)], "") + dots
}

// ShortenedCharacters cuts a text down to most characters, which is what the API server counts of a field; three dots at its end say so.
func ShortenedCharacters(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:max(most-len(dots), 0)]) + dots
}
