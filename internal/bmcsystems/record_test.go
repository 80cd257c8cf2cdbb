// SPDX-License-Identifier: Apache-2.0

package bmcsystems

import "testing"

func TestContradicts(t *testing.T) {
	const mac, otherMAC = "00:40:a6:00:00:01", "00:40:a6:00:00:02"
	both := Record{SerialNumbers: []string{"s"}, MACs: []string{"00:40:A6:00:00:01"}}
	for name, c := range map[string]struct {
		record     Record
		assignment Assignment
		want       bool
	}{
		"the same hardware, in whatever case":   {both, Assignment{SerialNumber: "S", MAC: mac}, false},
		"an exchanged card":                     {both, Assignment{SerialNumber: "S", MAC: otherMAC}, false},
		"an exchanged board with the card kept": {both, Assignment{SerialNumber: "T", MAC: mac}, false},
		"another serial number and MAC address": {both, Assignment{SerialNumber: "T", MAC: otherMAC}, true},
		"another serial number alone":           {both, Assignment{SerialNumber: "T"}, true},
		"another MAC address alone":             {both, Assignment{MAC: otherMAC}, true},
		"nothing is recorded":                   {Record{}, Assignment{SerialNumber: "T", MAC: otherMAC}, false},
		"what is recorded is not what it names": {Record{SerialNumbers: []string{"S"}}, Assignment{MAC: mac}, false},
	} {
		if got := c.record.Contradicts(c.assignment); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
