// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"fmt"
	"slices"
)

// The properties by which a resource shows the locator light.
const (
	indicatorLED            = "IndicatorLED"
	locationIndicatorActive = "LocationIndicatorActive"
)

// lightOf is the locator light that a captured host shows; empty where it shows none.
func lightOf(body doc) string {
	if led := text(body, indicatorLED); led != "" {
		return led
	}
	lit, shown := body[locationIndicatorActive].(bool)
	return lightFor(lit, shown)
}

func lightFor(lit, known bool) string {
	switch {
	case !known:
		return ""
	case lit:
		return "Lit"
	}
	return "Off"
}

// showLight puts the light of now where the tree shows such a property. bmc.mu is held.
func (m *Machine) showLight(body doc) {
	if m.led == "" {
		return
	}
	if _, shown := body[indicatorLED]; shown {
		body[indicatorLED] = m.led
	}
	if _, shown := body[locationIndicatorActive]; shown {
		body[locationIndicatorActive] = m.led != "Off"
	}
}

// treeLight checks the properties of the light in a change; led is empty where it names none.
func treeLight(in, shown doc) (led string, refused *answer) {
	refuse := func(a answer) (string, *answer) { return "", &a }
	if value, asked := in[indicatorLED]; asked {
		word, isText := value.(string)
		if !isText {
			return refuse(wrongType(indicatorLED, indicatorLED))
		}
		offered := words(shown[indicatorLED+"@Redfish.AllowableValues"])
		if len(offered) == 0 {
			offered = []string{"Lit", "Blinking", "Off"}
		}
		if !slices.Contains(offered, word) {
			return refuse(refusal("PropertyValueNotInList", indicatorLED, indicatorLED, fmt.Sprintf(
				"The value %q for the property %s is not in the list of acceptable values.", word, indicatorLED)))
		}
		led = word
	}
	if value, asked := in[locationIndicatorActive]; asked {
		lit, isBool := value.(bool)
		if !isBool {
			return refuse(wrongType(locationIndicatorActive, locationIndicatorActive))
		}
		led = lightFor(lit, true)
	}
	return led, nil
}
