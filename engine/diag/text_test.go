// SPDX-License-Identifier: Apache-2.0

package diag

import "testing"

func TestShortened(t *testing.T) {
	for name, c := range map[string]struct {
		text              string
		most              int
		bytes, characters string
	}{
		"a short text stays":              {"twelve bytes", 12, "twelve bytes", "twelve bytes"},
		"a long text ends in dots":        {"thirteen bytes", 12, "thirteen ...", "thirteen ..."},
		"a character is never cut in two": {"nine ééééé", 12, "nine éé...", "nine ééééé"},
		"characters are counted":          {"nine ééééééééé", 12, "nine éé...", "nine éééé..."},
		"no text stays":                   {"", 12, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Shortened(c.text, c.most); got != c.bytes {
				t.Errorf("got %q, want %q", got, c.bytes)
			}
			if got := ShortenedCharacters(c.text, c.most); got != c.characters {
				t.Errorf("got %q, want %q", got, c.characters)
			}
		})
	}
}
