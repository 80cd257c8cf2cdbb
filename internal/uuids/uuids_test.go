// SPDX-License-Identifier: Apache-2.0

package uuids

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpellings(t *testing.T) {
	for name, c := range map[string]struct {
		uuid string
		want []string
	}{
		"both byte orders, the given first": {"00112233-4455-6677-8899-aabbccddeeff",
			[]string{"00112233-4455-6677-8899-aabbccddeeff", "33221100-5544-7766-8899-aabbccddeeff"}},
		"both in lower case": {"33221100-5544-7766-8899-AABBCCDDEEFF",
			[]string{"33221100-5544-7766-8899-aabbccddeeff", "00112233-4455-6677-8899-aabbccddeeff"}},
		"one where both orders read the same":   {"11111111-2222-3333-4455-667788990011", []string{"11111111-2222-3333-4455-667788990011"}},
		"one where it is no UUID":               {"Rack1-Slot7", []string{"rack1-slot7"}},
		"one where a group has the wrong width": {"0011223-34455-6677-8899-aabbccddeeff", []string{"0011223-34455-6677-8899-aabbccddeeff"}},
		"one where a digit is not one":          {"0011223g-4455-6677-8899-aabbccddeeff", []string{"0011223g-4455-6677-8899-aabbccddeeff"}},
		"none where nothing is given":           {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Spellings(c.uuid)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestSame(t *testing.T) {
	const uuid = "4c4c4544-0042-3510-8054-b7c04f4d4d32"
	for name, c := range map[string]struct {
		a, b string
		want bool
	}{
		"in any case":                   {uuid, strings.ToUpper(uuid), true},
		"in the other byte order":       {uuid, "44454C4C-4200-1035-8054-B7C04F4D4D32", true},
		"not another machine":           {uuid, "44454c4c-4200-1035-8054-b7c04f4d4d33", false},
		"not a digit instead of a dash": {"4c4c4544000420351008054-b7c04f4d4d32", uuid, false},
		"a name that is no UUID":        {"Node-7", "node-7", true},
		"nothing is the same as empty":  {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Same(c.a, c.b); got != c.want {
				t.Errorf("Same(%q, %q) = %v", c.a, c.b, got)
			}
		})
	}
}

func FuzzSpellingsLeadBackToEachOther(f *testing.F) {
	f.Add("00112233-4455-6677-8899-aabbccddeeff")
	f.Add("----")
	f.Add("Ⱥ")
	f.Fuzz(func(t *testing.T, uuid string) {
		names := Spellings(uuid)
		if len(names) < 2 {
			return
		}
		if diff := cmp.Diff([]string{names[1], names[0]}, Spellings(names[1])); diff != "" {
			t.Errorf("%q (-want +got)\n%s", uuid, diff)
		}
	})
}

func TestShared(t *testing.T) {
	for uuid, want := range map[string]bool{
		"00000000-0000-0000-0000-000000000000": true,
		"03000200-0400-0500-0006-000700080009": true,
		"00020003-0004-0005-0006-000700080009": true, // the same in the other byte order
		"38947555-7742-3448-3784-823347823834": false,
		"":                                     false,
	} {
		if got := Shared(uuid); got != want {
			t.Errorf("%q: %t", uuid, got)
		}
	}
}
