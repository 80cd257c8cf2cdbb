// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"strings"
	"testing"

	"github.com/metalaw/metalaw/internal/uuids"
)

func TestSameSystem(t *testing.T) {
	const uuid, swapped = "4c4c4544-0035-3410-8050-c6c04f314733", "44454c4c-3500-1034-8050-c6c04f314733"
	for name, c := range map[string]struct {
		want, got Identity
		same      bool
	}{
		"the same UUID":                       {Identity{UUID: uuid}, Identity{UUID: uuid}, true},
		"another case, braces, no dashes":     {Identity{UUID: "{" + strings.ToUpper(uuid) + "}"}, Identity{UUID: strings.ReplaceAll(uuid, "-", "")}, true},
		"turned byte order":                   {Identity{UUID: swapped}, Identity{UUID: uuid}, true},
		"turned the other way":                {Identity{UUID: uuid}, Identity{UUID: swapped}, true},
		"another UUID, same serial":           {Identity{UUID: uuid, SerialNumber: "S"}, Identity{UUID: uuid[:35] + "4", SerialNumber: "S"}, false},
		"no UUID found, same serial":          {Identity{UUID: uuid, SerialNumber: "S"}, Identity{SerialNumber: "S"}, false},
		"no UUID wanted, same serial":         {Identity{SerialNumber: "S"}, Identity{UUID: uuid, SerialNumber: "s"}, true},
		"no UUID wanted, another serial":      {Identity{SerialNumber: "S"}, Identity{SerialNumber: "T"}, false},
		"nothing wanted":                      {Identity{Model: "M"}, Identity{UUID: uuid, SerialNumber: "S", Model: "M"}, false},
		"nothing at all":                      {Identity{}, Identity{}, false},
		"placeholders are no identity":        {Identity{UUID: "00000000-0000-0000-0000-000000000000"}, Identity{UUID: "00000000-0000-0000-0000-000000000000"}, false},
		"a shared default is no identity":     {Identity{UUID: "03000200-0400-0500-0006-000700080009"}, Identity{UUID: "03000200-0400-0500-0006-000700080009"}, false},
		"a placeholder serial is no identity": {Identity{SerialNumber: "To be filled by O.E.M."}, Identity{SerialNumber: "To be filled by O.E.M."}, false},
		"a UUID of zeros, then the serial":    {Identity{UUID: "00000000-0000-0000-0000-000000000000", SerialNumber: "S"}, Identity{SerialNumber: "S"}, true},
	} {
		if got := SameSystem(c.want, c.got); got != c.same {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzSameSystem(f *testing.F) {
	f.Add("4c4c4544-0035-3410-8050-c6c04f314733", "S1")
	f.Add("urn:uuid:", "{}")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, uuid, serial string) {
		id := Identity{UUID: uuid, SerialNumber: serial}
		known := cleanUUID(uuid) != "" || cleanSerial(serial) != ""
		if SameSystem(id, id) != known {
			t.Errorf("%q, %q: an identity is the same as itself exactly where it says something", uuid, serial)
		}
		if c := cleanUUID(uuid); uuids.Swap(uuids.Swap(c)) != c || cleanUUID(c) != c {
			t.Errorf("%q is not stable", uuid)
		}
	})
}
