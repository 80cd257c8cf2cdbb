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
func words(format string, args ...any) string { return cut(fmt.Sprintf(format, args...), maxMessage) }

// cut is a text of at most so many bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	at := max(most-len("..."), 0)
	for !utf8.RuneStart(text[at]) {
		at--
	}
	return text[:at] + "..."
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

// mostNames is how many names a message has.
const mostNames = 3

// some are the first names of a list, and how many there are besides.
func some(names []string) string {
	if len(names) <= mostNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
}
