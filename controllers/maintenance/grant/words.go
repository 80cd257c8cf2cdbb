// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// maxMessage bounds a message, in bytes.
const maxMessage = 200

// words is a message of bounded length.
func words(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	if len(text) <= maxMessage {
		return text
	}
	cut := maxMessage - len("...")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}

// answer is an Answer whose message is of bounded length.
func answer(reason, format string, args ...any) Answer { return Answer{reason, words(format, args...)} }

// moment is a time as messages show it.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04Z") }

// length is a duration as a bundle says it: 1h, and not 1h0m0s.
func length(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
