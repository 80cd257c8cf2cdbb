// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"testing"

	"github.com/metalaw/metalaw/engine"
	"github.com/metalaw/metalaw/macprefixes"
)

func TestDecide(t *testing.T) {
	row := macprefixes.Row{Prefix: "b0:7b:25", Manufacturer: "Dell", Type: "bmc"}
	sw := macprefixes.Row{Prefix: "b0:7b:25", Manufacturer: "Dell", Type: "switch"}
	_, malformed := macprefixes.Normalize("b0:7b")
	for _, c := range []struct {
		name    string
		facts   facts
		matched bool
		reason  string
		ensure  bool
	}{
		{"a malformed address is told", facts{macErr: malformed}, false, "InvalidMAC", false},
		{"an unknown prefix is told", facts{mac: "00:11:22:33:44:55"}, false, "UnknownPrefix", false},
		{"a device of another type is left alone", facts{row: sw, found: true}, true, "NotABMC", false},
		{"a BMC is made of a BMC", facts{row: row, found: true}, true, "BMCCreated", true},
		{"a BMC that exists is held on to", facts{row: row, found: true, bmc: "e"}, true, "BMCCreated", true},
		{"a BMC of another name that uses the endpoint is enough", facts{row: row, found: true, bmc: "by-hand"}, true, "BMCCreated", false},
		{"a name that is taken is told", facts{row: row, found: true, holder: "the address 10.0.0.1"}, true, "NameTaken", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.facts.name, c.facts.revision = "e", engine.Revision{Name: "default", Version: "1.0.0"}
			v := decide(c.facts)
			if v.matched != c.matched || v.reason != c.reason || v.ensure != c.ensure || v.message == "" || v.matchMessage == "" {
				t.Errorf("got %+v, want matched %t, reason %s, ensure %t, and messages", v, c.matched, c.reason, c.ensure)
			}
		})
	}
}

func TestAnUnknownPrefixSaysWhatCanBeDoneToday(t *testing.T) {
	v := decide(facts{name: "e", mac: "00:11:22:33:44:55", revision: engine.Revision{Name: "default", Version: "1.0.0"}})
	want := "no row of macprefixes.yaml in bundle default 1.0.0 matches 00:11:22:33:44:55. The rows come with the policy bundle, and cannot be " +
		"added to yet; if the device is a BMC, create its BMCSecret and its BMC by hand"
	if v.message != want {
		t.Errorf("got  %s\nwant %s", v.message, want)
	}
}
