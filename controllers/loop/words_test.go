// SPDX-License-Identifier: Apache-2.0

package loop

import "testing"

func TestShortened(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		most int
		want string
	}{
		"a short text stays":              {"twelve bytes", 12, "twelve bytes"},
		"a long text ends in dots":        {"thirteen bytes", 12, "thirteen ..."},
		"a character is never cut in two": {"nine ééééé", 12, "nine éé..."},
		"no text stays":                   {"", 12, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Shortened(c.text, c.most); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
