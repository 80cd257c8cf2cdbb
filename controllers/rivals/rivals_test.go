// SPDX-License-Identifier: Apache-2.0

package rivals

import (
	"strings"
	"testing"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

const (
	uuid    = "4c4c4544-0042-3510-8054-b7c04f4d4d32"
	swapped = "44454c4c-4200-1035-8054-b7c04f4d4d32"
)

func seen(manager, serial, system string, serials ...string) Seen {
	return Seen{UUID: manager, Serial: serial, Systems: []System{{UUID: system, Serials: serials}}}
}

// A BMC that starts shows null for a UUID, or answers its system with an error.
func TestARivalWhoseSystemCannotBeReadStays(t *testing.T) {
	own, twin := seen("aaaaaaaa-0000-0000-0000-000000000001", "B1", uuid), seen("aaaaaaaa-0000-0000-0000-000000000002", "B2", uuid)
	unread := Seen{UUID: twin.UUID, Serial: twin.Serial, Partial: true}
	other := seen(twin.UUID, twin.Serial, "11111111-1111-1111-1111-111111111111")
	stored := []policyv1alpha1.RivalBMC{{Name: "b"}}
	for name, c := range map[string]struct {
		readings []Seen
		stored   []policyv1alpha1.RivalBMC
		want     int
	}{
		"after it was read":              {[]Seen{twin, unread, unread}, nil, 1},
		"where only the store knows it":  {[]Seen{unread}, stored, 1},
		"and is named once":              {[]Seen{twin, unread}, stored, 1},
		"until it shows another system":  {[]Seen{twin, unread, other}, stored, 0},
		"and is read again as the rival": {[]Seen{unread, twin}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := New()
			m.Note("a", own)
			for _, r := range c.readings {
				m.Note("b", r)
			}
			if got := m.Of(uuid, "a", c.stored); len(got) != c.want {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestTheBMCsThatShowTheUUIDOfAnother(t *testing.T) {
	own := seen("aaaaaaaa-0000-0000-0000-000000000001", "B1", uuid, "A1B2C3")
	for name, c := range map[string]struct {
		others map[string]Seen
		stored []policyv1alpha1.RivalBMC
		want   string
	}{
		"another BMC, in the other byte order": {map[string]Seen{"b": seen("aaaaaaaa-0000-0000-0000-000000000002", "B2", strings.ToUpper(swapped))}, nil, "b"},
		"the same BMC under two names":         {map[string]Seen{"b": own}, nil, ""},
		"the same BMC, which hides its serial": {map[string]Seen{"b": seen("AAAAAAAA-0000-0000-0000-000000000001", "", uuid)}, nil, ""},
		"one with another serial number":       {map[string]Seen{"b": seen("aaaaaaaa-0000-0000-0000-000000000001", "B2", uuid)}, nil, "b"},
		"one whose system has another serial":  {map[string]Seen{"b": seen("aaaaaaaa-0000-0000-0000-000000000001", "", uuid, "Z9Y8X7")}, nil, "b"},
		"one that shows nothing of itself":     {map[string]Seen{"b": seen("", "", uuid)}, nil, "b"},
		"none that shows another system":       {map[string]Seen{"b": seen("", "", "11111111-1111-1111-1111-111111111111")}, nil, ""},
		"a stored one that was not read yet":   {nil, []policyv1alpha1.RivalBMC{{Name: "b"}}, "b"},
		"no stored one that shows another now": {map[string]Seen{"b": seen("", "", "11111111-1111-1111-1111-111111111111")}, []policyv1alpha1.RivalBMC{{Name: "b"}}, ""},
		"all of them, in order":                {map[string]Seen{"d": seen("x", "", uuid), "b": seen("y", "", uuid)}, []policyv1alpha1.RivalBMC{{Name: "c"}}, "b c d"},
	} {
		t.Run(name, func(t *testing.T) {
			m := New()
			m.Note("a", own)
			for bmc, s := range c.others {
				m.Note(bmc, s)
			}
			var names []string
			for _, r := range m.Of(uuid, "a", c.stored) {
				names = append(names, r.Name)
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			for bmc := range c.others {
				m.Forget(bmc)
			}
			if got := m.Of(uuid, "a", nil); len(got) > 0 {
				t.Errorf("forgotten BMCs are rivals: %+v", got)
			}
		})
	}
}

func TestAServerWithoutABMCObjectHasNoRivals(t *testing.T) {
	m := New()
	m.Note("b", seen("", "", uuid))
	if got := m.Of(uuid, "", nil); len(got) > 0 {
		t.Errorf("got %+v", got)
	}
}
