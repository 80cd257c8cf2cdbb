// SPDX-License-Identifier: Apache-2.0

package oldtls

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		want    Allowed
		unknown []string
	}{
		"nothing":                    {"", Allowed{}, nil},
		"one word":                   {"rsa-key-exchange", Allowed{RSAKeyExchange: true}, nil},
		"both, with a comma":         {"rsa-key-exchange, negative-serial\n", Allowed{true, true}, nil},
		"both, with a blank":         {"negative-serial rsa-key-exchange", Allowed{true, true}, nil},
		"an unknown word is named":   {"negative-serial,tls10", Allowed{NegativeSerial: true}, []string{"tls10"}},
		"the case of letters counts": {"Negative-Serial", Allowed{}, []string{"Negative-Serial"}},
		"a word twice":               {"x,x", Allowed{}, []string{"x"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, unknown := Parse(c.text); got != c.want || !slices.Equal(unknown, c.unknown) {
				t.Errorf("%+v, unknown %q", got, unknown)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("rsa-key-exchange, negative-serial")
	f.Fuzz(func(t *testing.T, text string) {
		a, unknown := Parse(text)
		if a.RSAKeyExchange && !strings.Contains(text, RSAKeyExchange) || a.NegativeSerial && !strings.Contains(text, NegativeSerial) {
			t.Errorf("%q allows %+v", text, a)
		}
		for _, word := range unknown {
			if word == "" || slices.Contains(Words(), word) {
				t.Errorf("%q: unknown %q", text, word)
			}
		}
	})
}
