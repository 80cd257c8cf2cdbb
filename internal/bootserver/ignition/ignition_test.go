// SPDX-License-Identifier: Apache-2.0

package ignition

import (
	"strings"
	"testing"
)

func TestOnlyTheFormatOfButaneIsTranslated(t *testing.T) {
	const json = `{"ignition":{"version":"3.4.0"}}`
	for name, c := range map[string]struct {
		text, format, want string
		fails              bool
	}{
		"no format":            {json, "", json, false},
		"another format":       {"anything", "cloud-init", "anything", false},
		"Butane":               {"variant: fcos\nversion: 1.5.0\n", "fcos", `"version":"3.4.0"`, false},
		"Butane, with a blank": {"variant: fcos\nversion: 1.5.0\n", " fcos\n", `"version":"3.4.0"`, false},
		"Ignition as Butane":   {json, "fcos", "", true},
	} {
		got, err := Render([]byte(c.text), c.format)
		if (err != nil) != c.fails || !strings.Contains(string(got), c.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func FuzzRender(f *testing.F) {
	f.Add([]byte("variant: fcos\nversion: 1.5.0\n"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		_, _ = Render(text, FormatButane) // it must not panic
	})
}
