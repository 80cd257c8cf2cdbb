// SPDX-License-Identifier: Apache-2.0

package bundle

import "testing"

func TestSettingsOfMachines(t *testing.T) {
	for name, c := range map[string]struct {
		settings        string
		withoutOverride bool
		health          Health
		code            string // of the first finding
	}{
		"nothing said is the safe value":     {"  releaseGrace: 0s\n", false, Health{StopsInspection}, ""},
		"a boot without override is allowed": {"  boot: {withoutOverride: true}\n", true, Health{StopsInspection}, ""},
		"critical health stops offering":     {"  health: {criticalStops: offering}\n", false, Health{StopsOffering}, ""},
		"critical health stops nothing":      {"  health: {criticalStops: nothing}\n", false, Health{StopsNothing}, ""},
		"another word is refused":            {"  health: {criticalStops: everything}\n", false, Health{StopsInspection}, "setting-word"},
		"another key is refused":             {"  boot: {always: true}\n", false, Health{StopsInspection}, "yaml-unknown-key"},
	} {
		t.Run(name, func(t *testing.T) {
			m, found := parseManifest([]byte("apiVersion: policy.metalaw.dev/v1alpha1\nkind: Bundle\nname: a\nversion: 1.0.0\nsettings:\n" + c.settings))
			code := ""
			if len(found) > 0 {
				code = found[0].Code
			}
			if code != c.code || m.Settings.Boot.WithoutOverride != c.withoutOverride || m.Settings.Health != c.health {
				t.Errorf("got %+v, %+v, %v", m.Settings.Boot, m.Settings.Health, found)
			}
		})
	}
}
