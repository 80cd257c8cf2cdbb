// SPDX-License-Identifier: Apache-2.0

package spelling

import "testing"

func TestNearest(t *testing.T) {
	words := []string{"Available", "Reserved", "Released", "On"}
	for name, c := range map[string]struct{ word, want string }{
		"one letter is too many":        {"Available2", "Available"},
		"two words are as near":         {"Reseased", "Released"},
		"nothing is like it":            {"Bathroom", ""},
		"a short word needs to be near": {"Xy", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Nearest(c.word, words); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
