// SPDX-License-Identifier: Apache-2.0

package boot

import "testing"

func TestSource(t *testing.T) {
	for name, c := range map[string]struct {
		missing bool
		purpose string
		allowed bool
		want    string // empty for a refusal
	}{
		"an override that is shown is used":                {false, "Claim", true, "Pxe"},
		"without one nothing is switched on":               {true, "Claim", false, ""},
		"the policy may allow the boot order":              {true, "Claim", true, "BootOrder"},
		"the boot order boots the probe too":               {true, "Probe", true, "BootOrder"},
		"a wipe is never booted by the boot order":         {true, "Wipe", true, ""},
		"a wipe is booted by an override that is shown":    {false, "Wipe", false, "Pxe"},
		"a wipe without an override is refused either way": {true, "Wipe", false, ""},
	} {
		source, refused := Source("Pxe", c.missing, c.purpose, c.allowed)
		if source != c.want || (refused == "") != (c.want != "") {
			t.Errorf("%s: %q, %q", name, source, refused)
		}
	}
}
