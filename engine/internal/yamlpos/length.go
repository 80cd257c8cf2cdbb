// SPDX-License-Identifier: Apache-2.0

package yamlpos

import (
	"math"
	"regexp"
	"strings"
	"time"
)

// Longest is how an author writes the longest time that is counted with, in whole hours; it is 292 years.
var Longest = LengthText(time.Duration(math.MaxInt64).Truncate(time.Hour))

// LengthText is a time as an author writes it: 24h, and not 24h0m0s.
func LengthText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

var lengthForm = regexp.MustCompile(`^\+?(\d+(\.\d*)?(ns|us|µs|μs|ms|s|m|h))+$`)

// TooLong says of a text that it is written like a length of time such as 15m, and is longer than can be counted with.
func TooLong(text string) bool {
	_, err := time.ParseDuration(text)
	return err != nil && lengthForm.MatchString(text)
}
