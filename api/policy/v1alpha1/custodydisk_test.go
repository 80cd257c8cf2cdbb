// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"reflect"
	"testing"
)

func TestForWhichDisksNobodyAnswers(t *testing.T) {
	w, s, n := CustodyDisk{WWID: "w", Serial: "s"}, CustodyDisk{Serial: "s", Name: "sda"}, CustodyDisk{Name: "sdb"}
	custody := func(disks ...CustodyDisk) *Custody {
		c := &Custody{}
		for _, d := range disks {
			c.Attested = append(c.Attested, AttestedDisk{CustodyDisk: d})
		}
		return c
	}
	for name, c := range map[string]struct {
		custody     *Custody
		disks, want []CustodyDisk
	}{
		"all without a custody":                      {nil, []CustodyDisk{w, s}, []CustodyDisk{w, s}},
		"none where each is attested":                {custody(w, s, n), []CustodyDisk{n, s, w}, nil},
		"one whose wwid is another":                  {custody(s), []CustodyDisk{w, s}, []CustodyDisk{w}},
		"the second of two with one serial number":   {custody(s), []CustodyDisk{s, s}, []CustodyDisk{s}},
		"not a second path to one wwid":              {custody(w), []CustodyDisk{w, w}, nil},
		"one of which nothing is known, in any case": {custody(CustodyDisk{}), []CustodyDisk{{}}, []CustodyDisk{{}}},
	} {
		if got := c.custody.Unattested(c.disks); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
