// SPDX-License-Identifier: Apache-2.0

package bmcsystems

import (
	"reflect"
	"strings"
	"testing"
)

const (
	node0, node1 = "/redfish/v1/Systems/Node0", "/redfish/v1/Systems/Node1"
	uuidA, uuidB = "0a000000-0000-4000-8000-00000000000a", "0b000000-0000-4000-8000-00000000000b"
)

func TestParseAssignments(t *testing.T) {
	for name, c := range map[string]struct {
		text, fails string
		want        Assignments
	}{
		"nothing assigns nothing": {want: Assignments{}},
		"a MAC address proves a system": {text: node0 + ": {uuid: 0A000000-0000-4000-8000-00000000000A, mac: 00-40-A6-00-00-01}",
			want: Assignments{"/redfish/v1/systems/node0": {UUID: uuidA, MAC: "00:40:a6:00:00:01"}}},
		"a serial number of digits is text": {text: node0 + "/: {uuid: " + uuidA + ", serial: 0012}",
			want: Assignments{"/redfish/v1/systems/node0": {UUID: uuidA, SerialNumber: "0012"}}},
		"JSON is YAML": {text: `{"` + node0 + `": {"uuid": "` + uuidA + `", "serial": "S"}, "` + node1 + `": {"uuid": "` + uuidB + `", "serial": "S"}}`,
			want: Assignments{"/redfish/v1/systems/node0": {UUID: uuidA, SerialNumber: "S"}, "/redfish/v1/systems/node1": {UUID: uuidB, SerialNumber: "S"}}},
		"nothing that proves it is refused":      {text: node0 + ": {uuid: " + uuidA + "}", fails: "it names neither serial nor mac"},
		"text that is no UUID is refused":        {text: node0 + ": {uuid: node-0, serial: S}", fails: `uuid "node-0" is no UUID`},
		"a UUID that firmware shares is refused": {text: node0 + ": {uuid: 03000200-0400-0500-0006-000700080009, serial: S}", fails: "never given one"},
		"one UUID for two systems is refused":    {text: node0 + ": {uuid: " + uuidA + ", serial: S}\n" + node1 + ": {uuid: " + uuidA + ", serial: S}", fails: "is that of"},
		"the other byte order is the same UUID": {text: node0 + ": {uuid: " + uuidA + ", serial: S}\n" + node1 + ": {uuid: 0000000a-0000-0040-8000-00000000000a, serial: S}",
			fails: "is that of"},
		"one system twice is refused":        {text: node0 + ": {uuid: " + uuidA + ", serial: S}\n" + node0 + "/: {uuid: " + uuidB + ", serial: S}", fails: "is named twice"},
		"a group address is refused":         {text: node0 + ": {uuid: " + uuidA + ", mac: 01:40:a6:00:00:01}", fails: "is no MAC address"},
		"an unknown field is refused":        {text: node0 + ": {uuid: " + uuidA + ", sn: S}", fails: "sn not found"},
		"a key that is no URI is refused":    {text: "Node0: {uuid: " + uuidA + ", serial: S}", fails: "is no URI of a system"},
		"text that is no object is refused":  {text: uuidA, fails: "it is no YAML object"},
		"text that is too long is not read":  {text: strings.Repeat(" ", maxText+1), fails: "it has 16385 bytes"},
		"a serial number of two lines fails": {text: node0 + `: {uuid: ` + uuidA + `, serial: "a\nb"}`, fails: "in one line"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseAssignments(c.text)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("got %v, %v", got, err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestParseMACs(t *testing.T) {
	for name, c := range map[string]struct {
		text, fails string
		want        MACs
	}{
		"addresses of digits are no numbers": {text: node0 + ": [00:40:06:00:00:01, 00:40:06:00:00:02]",
			want: MACs{"/redfish/v1/systems/node0": {"00:40:06:00:00:01", "00:40:06:00:00:02"}}},
		"an empty list is refused":          {text: node0 + ": []", fails: "it lists 0 MAC addresses"},
		"one address for two systems fails": {text: node0 + ": [00:40:06:00:00:01]\n" + node1 + ": [00-40-06-00-00-01]", fails: "is listed twice"},
		"another text is refused":           {text: node0 + ": [Not Available]", fails: `mac "Not Available" is no MAC address`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseMACs(c.text)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("got %v, %v", got, err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(node0 + ": {uuid: " + uuidA + ", serial: S, mac: 00:40:a6:00:00:01}")
	f.Add(node0 + ": [00:40:a6:00:00:01]")
	f.Add("&a {*a: *a}")
	f.Fuzz(func(t *testing.T, text string) {
		assigned, err := ParseAssignments(text)
		if err != nil && (assigned != nil || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q: %v, %v", text, assigned, err)
		}
		for uri, a := range assigned {
			if again, err := a.cleaned(); err != nil || again != a || Key(uri) != uri {
				t.Errorf("%q: %v is not clean", uri, a)
			}
		}
		if macs, err := ParseMACs(text); err != nil && macs != nil {
			t.Errorf("%q: %v, %v", text, macs, err)
		}
	})
}
