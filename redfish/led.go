// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"fmt"
)

// SetLED implements Locator. IndicatorLED is used where the BMC has it, because it can blink; LocationIndicatorActive is
// what newer BMCs have instead, and what they take where they still show the old property.
func (c *client) SetLED(ctx context.Context, uri string, want Identity, led IndicatorLED) error {
	if led != LEDLit && led != LEDBlinking && led != LEDOff {
		return fmt.Errorf("redfish: %q is not a state of the locator light; use Lit, Blinking or Off", led)
	}
	return c.change(ctx, uri, change{
		want: want,
		refuse: func(doc, _ *systemDoc, _ SystemSnapshot) error {
			if doc.IndicatorLED == "" && !doc.LocationIndicatorActive.Present {
				return &UnsupportedError{URI: uri, Wanted: "a locator light"}
			}
			return nil
		},
		holds: func(current, _ *systemDoc) bool {
			if current.IndicatorLED == "" {
				return current.led() == switched(led != LEDOff)
			}
			return current.led() == led
		},
		attempts: func(doc, _ *systemDoc) []attempt {
			var out []attempt
			if doc.IndicatorLED != "" {
				out = append(out, attempt{writes: []write{{body: map[string]any{"IndicatorLED": led}}}})
			}
			if doc.LocationIndicatorActive.Present {
				out = append(out, attempt{writes: []write{{body: map[string]any{"LocationIndicatorActive": led != LEDOff}}}})
			}
			return out
		},
	})
}
