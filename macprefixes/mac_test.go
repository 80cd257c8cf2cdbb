// SPDX-License-Identifier: Apache-2.0

package macprefixes

import (
	"strings"
	"testing"
)

func TestNormalize(t *testing.T) {
	const want = "b0:7b:25:00:0a:ff"
	for name, mac := range map[string]string{
		"lower case with colons is kept":        "b0:7b:25:00:0a:ff",
		"upper case is lowered":                 "B0:7B:25:00:0A:FF",
		"dashes become colons":                  "B0-7B-25-00-0A-FF",
		"the dots of switches become colons":    "b07b.2500.0aff",
		"spaces become colons":                  "b0 7b 25 00 0a ff",
		"no separator is enough":                "B07B25000AFF",
		"one separator in the middle is fine":   "b07b25-000aff",
		"a space around the address is no harm": " b0:7b:25:00:0a:ff ",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := Normalize(mac); err != nil || got != want {
				t.Errorf("Normalize(%q) = %q, %v; want %q", mac, got, err, want)
			}
		})
	}
}

func TestNormalizeRefuses(t *testing.T) {
	for name, c := range map[string]struct{ mac, says string }{
		"an empty address":                    {"", "is empty"},
		"separators alone":                    {"::", "is empty"},
		"a short address":                     {"b0:7b:25", "has 6 hexadecimal digits and needs 12"},
		"an EUI-64":                           {"b0:7b:25:ff:fe:00:0a:ff", "is an EUI-64"},
		"an address without leading zeros":    {"b0:7b:25:0:a:ff", "odd number of digits before character 11"},
		"what a BMC writes where it has none": {"Not Available", `'N' as character 1`},
		"a multicast address":                 {"01:00:5e:00:00:01", "multicast"},
		"all zeros":                           {"00:00:00:00:00:00", "all zeros"},
		"the broadcast address":               {"ff:ff:ff:ff:ff:ff", "broadcast"},
		"a very long text, which is cut":      {strings.Repeat("a", 500), `aaaa..."`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Normalize(c.mac)
			if err == nil || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 300 {
				t.Errorf("Normalize(%q) = %q, %v; want an error with %q", c.mac, got, err, c.says)
			}
		})
	}
}

func FuzzNormalize(f *testing.F) {
	for _, seed := range []string{"b0:7b:25:00:0a:ff", "B07B.2500.0AFF", "", "Not Available", "\xff", "0-0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, mac string) {
		got, err := Normalize(mac)
		if err != nil {
			return
		}
		if again, err := Normalize(got); err != nil || again != got || len(got) != 17 {
			t.Errorf("Normalize(%q) = %q, and normalised again %q, %v", mac, got, again, err)
		}
	})
}

func BenchmarkNormalize(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Normalize("B0-7B-25-00-0A-FF"); err != nil {
			b.Fatal(err)
		}
	}
}
