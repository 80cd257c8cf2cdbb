// SPDX-License-Identifier: Apache-2.0

package twins

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	const wwid = "naa.5000c500a1b2c3d4"
	private := func(wwid, serial string) Disk { return Disk{WWID: wwid, Serial: serial, Private: true} }
	sas := func(wwid, serial string) Disk { return Disk{WWID: wwid, Serial: serial} }
	for _, test := range []struct {
		name string
		a, b Disk
		twin bool
	}{
		{"two disks of their own", private(wwid, "S1"), private("naa.5000c500a1b2c3d5", "S2"), false},
		{"two SATA disks of a batch with one wwid", private(wwid, "S1"), private(wwid, "S2"), false},
		{"two paths to one disk", private(wwid, "S1"), private(wwid, "S1"), true},
		{"one wwid, and one of them shows no serial number", private(wwid, "S1"), private(wwid, ""), true},
		{"one wwid, and serial numbers of zeros", private(wwid, "0000"), private(wwid, "00000000"), true},
		{"one wwid, and a placeholder as serial number", private(wwid, "S1"), private(wwid, "unknown"), true},
		{"two SAS disks with one wwid may be shared", sas(wwid, "S1"), sas(wwid, "S2"), true},
		{"a SATA and a SAS disk with one wwid", private(wwid, "S1"), sas(wwid, "S2"), true},
		{"two disks without a wwid", private("", "S1"), private("", "S2"), false},
		{"two disks with a wwid of zeros", private("naa.0000000000000000", "S1"), private("naa.0000000000000000", "S1"), false},
		{"two disks with a wwid that an enclosure made up", sas("naa.5000000000000001", "S1"), sas("naa.5000000000000001", "S2"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.a.Name, test.b.Name = "sda", "sdb"
			all := []Disk{test.a, test.b}
			a, b := strings.Join(Of(test.a, all), " "), strings.Join(Of(test.b, all), " ")
			if (a == "sdb") != test.twin || (b == "sda") != test.twin {
				t.Errorf("twins of sda: %q, of sdb: %q", a, b)
			}
		})
	}
}
