// SPDX-License-Identifier: Apache-2.0

package loop

import "github.com/metalaw/metalaw/engine/diag"

const (
	// MaxMessage keeps the message of a condition readable; the API accepts more.
	MaxMessage = 2048
	// MaxNote is what the API accepts as the note of an event; it drops an event with more.
	MaxNote = 1024
)

// Shortened cuts a text down to most bytes, without breaking a character; three dots at its end say so.
func Shortened(text string, most int) string {
	return diag.Shortened(text, most)
}
