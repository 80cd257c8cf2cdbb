// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"net/http"
	"strings"
	"testing"
)

// withLight adds properties to the host of a made-up tree.
func withLight(properties string) func(map[string]string) {
	return func(docs map[string]string) {
		docs[treeHostPath] = strings.Replace(docs[treeHostPath], `"Id":"Host",`, `"Id":"Host",`+properties+`,`, 1)
	}
}

func TestATreeTakesALightWhereItShowsOne(t *testing.T) {
	for name, c := range map[string]struct {
		shows     string
		change    doc
		status    int
		indicator any
		active    any
		led       string
	}{
		"by the older property":              {`"IndicatorLED":"Off"`, doc{"IndicatorLED": "Blinking"}, 200, "Blinking", nil, "Blinking"},
		"by the newer property":              {`"LocationIndicatorActive":false`, doc{"LocationIndicatorActive": true}, 200, nil, true, "Lit"},
		"by either, and both show it":        {`"IndicatorLED":"Off","LocationIndicatorActive":false`, doc{"LocationIndicatorActive": true}, 200, "Lit", true, "Lit"},
		"one that was captured lit goes off": {`"IndicatorLED":"Lit"`, doc{"IndicatorLED": "Off"}, 200, "Off", nil, "Off"},
		"one that was captured as null":      {`"IndicatorLED":null`, doc{"IndicatorLED": "Lit"}, 200, "Lit", nil, "Lit"},
		"a word that is not offered":         {`"IndicatorLED":"Off","IndicatorLED@Redfish.AllowableValues":["Lit","Off"]`, doc{"IndicatorLED": "Blinking"}, 400, "Off", nil, "Off"},
		"a word that is none":                {`"IndicatorLED":"Off"`, doc{"IndicatorLED": "Green"}, 400, "Off", nil, "Off"},
		"a value of another type":            {`"IndicatorLED":"Off"`, doc{"IndicatorLED": true}, 400, "Off", nil, "Off"},
		"a text where true or false belongs": {`"LocationIndicatorActive":false`, doc{"LocationIndicatorActive": "true"}, 400, nil, false, "Off"},
		"a property that is not shown":       {`"IndicatorLED":"Off"`, doc{"LocationIndicatorActive": true}, 400, "Off", nil, "Off"},
		"all or none":                        {`"IndicatorLED":"Off"`, doc{"IndicatorLED": "Lit", "Boot": doc{"BootSourceOverrideTarget": "Moon"}}, 400, "Off", nil, "Off"},
	} {
		t.Run(name, func(t *testing.T) {
			m, call := servedTree(t, MachineSpec{}, withLight(c.shows))
			call.do(http.MethodPatch, treeHostPath, c.change, c.status)
			got := call.do(http.MethodGet, treeHostPath, nil, 200).doc
			if got["IndicatorLED"] != c.indicator || got["LocationIndicatorActive"] != c.active || m.LED() != c.led {
				t.Errorf("shows %v and %v, the machine %s", got["IndicatorLED"], got["LocationIndicatorActive"], m.LED())
			}
		})
	}
}

func TestALightChangesTheEntityTagOfATree(t *testing.T) {
	_, call := servedTree(t, MachineSpec{Power: PowerOn}, withLight(`"IndicatorLED":"Lit"`))
	if tag := call.do(http.MethodGet, treeHostPath, nil, 200).header.Get("Etag"); tag != `"abc"` {
		t.Errorf("what nothing changed has the tag %s", tag)
	}
	call.do(http.MethodPatch, treeHostPath, doc{"IndicatorLED": "Off"}, 200)
	if tag := call.do(http.MethodGet, treeHostPath, nil, 200).header.Get("Etag"); tag == `"abc"` {
		t.Error("another light has the same tag")
	}
}
