// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"strings"
	"testing"
	"time"
)

func TestBootSettingsOfAModel(t *testing.T) {
	const head = "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: b\nversion: 1.0.0\nsettings:\n"
	const models = `  boot:
    models:
    - {manufacturer: Lenovo, model: "ThinkSystem SR6*", firstWord: 40m}
    - {manufacturer: lenovo, mode: Legacy}
    - {model: R750, firstWord: 5m}
    firstWord: 30m
`
	for name, c := range map[string]struct {
		settings            string
		manufacturer, model string
		want                BootOf
	}{
		"nothing is said":                     {"  releaseGrace: 1s\n", "Lenovo", "X", BootOf{20 * time.Minute, "UEFI"}},
		"one value for all":                   {"  boot: {firstWord: 1h, mode: Legacy}\n", "Lenovo", "X", BootOf{time.Hour, "Legacy"}},
		"a model by its beginning":            {models, "Lenovo", "ThinkSystem SR670 V2", BootOf{40 * time.Minute, "UEFI"}},
		"a manufacturer in other letters":     {models, "LENOVO", "Other", BootOf{30 * time.Minute, "Legacy"}},
		"a model of whatever manufacturer":    {models, "Dell Inc.", "R750", BootOf{5 * time.Minute, "UEFI"}},
		"a model that no row names":           {models, "Dell Inc.", "R750xs", BootOf{30 * time.Minute, "UEFI"}},
		"a machine of which nothing is known": {models, "", "", BootOf{30 * time.Minute, "UEFI"}},
	} {
		t.Run(name, func(t *testing.T) {
			m, found := parseManifest([]byte(head + c.settings))
			if len(found) > 0 {
				t.Fatal(found)
			}
			if got := m.Settings.Boot.For(c.manufacturer, c.model); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestBootSettingsThatAreRefused(t *testing.T) {
	const head = "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: b\nversion: 1.0.0\nsettings:\n  boot: "
	for name, c := range map[string]struct{ boot, says string }{
		"a mode that there is not":                 {"{mode: BIOS}", `mode cannot be "BIOS"`},
		"no time at all":                           {"{firstWord: 0s}", "firstWord cannot be 0s"},
		"a star within a name":                     {`{models: [{model: "X9*DRi", mode: Legacy}]}`, `model cannot be "X9*DRi": a * stands for any text at the end only`},
		"a row that sets nothing":                  {`{models: [{model: "X9*"}]}`, "a row of models does not say how its machines are booted"},
		"more than a day":                          {"{firstWord: 25h}", "firstWord cannot be 25h0m0s"},
		"no duration":                              {"{firstWord: soon}", "which is no duration"},
		"a way that there is not":                  {"{ways: [Pxe]}", `ways cannot be "Pxe"`},
		"a time of the ignition that there is not": {"{ignition: Once}", `ignition cannot be "Once"`},
		"a way that is named twice":                {"{ways: [Network, Network]}", "ways names Network twice"},
		"no way at all":                            {"{ways: []}", "ways names no way to boot"},
		"a row without a model":                    {"{models: [{firstWord: 5m}]}", "names no model"},
		"a field that there is not":                {"{first: 5m}", "first"},
		"models that are no list":                  {"{models: {a: b}}", "models"},
	} {
		t.Run(name, func(t *testing.T) {
			_, found := parseManifest([]byte(head + c.boot + "\n"))
			if len(found) == 0 || !strings.Contains(found[0].Message, c.says) {
				t.Errorf("found %v, want %q", found, c.says)
			}
		})
	}
}

func TestTheWaysOfABootKeepTheirOrder(t *testing.T) {
	const head = "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: b\nversion: 1.0.0\nsettings:\n"
	for text, want := range map[string]string{
		"  releaseGrace: 1s\n":                        "",
		"  boot: {ways: [VirtualMedia, Network]}\n":   "VirtualMedia Network",
		"  boot: {ways: [Network], firstWord: 30m}\n": "Network",
	} {
		m, found := parseManifest([]byte(head + text))
		if got := strings.Join(m.Settings.Boot.Ways, " "); got != want || len(found) != 0 {
			t.Errorf("%q gives %q, %v", text, got, found)
		}
	}
}

func TestHowLongAnIgnitionIsServed(t *testing.T) {
	const head = "apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: b\nversion: 1.0.0\nsettings:\n  boot: "
	for boot, c := range map[string]struct{ want, warns string }{
		"{mode: UEFI}":               {IgnitionAlways, ""},
		"{ignition: Always}":         {IgnitionAlways, ""},
		"{ignition: UntilFirstSign}": {IgnitionUntilFirstSign, "does not come up again after a reboot"},
	} {
		m, found := parseManifest([]byte(head + boot + "\n"))
		warned := len(found) == 1 && strings.Contains(found[0].Message, c.warns)
		if m.Settings.Boot.Ignition != c.want || found.HasErrors() || (c.warns == "") != (len(found) == 0) || c.warns != "" && !warned {
			t.Errorf("%s: %q, %v", boot, m.Settings.Boot.Ignition, found)
		}
	}
}
