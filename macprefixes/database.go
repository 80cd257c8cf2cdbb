// SPDX-License-Identifier: Apache-2.0

package macprefixes

import (
	"reflect"
	"slices"
)

// Row is what the database says about devices whose MAC address begins with Prefix.
type Row struct {
	// Prefix is in lower case with colons, for example "b0:7b:25" or "70:b3:d5:1".
	Prefix string
	// Bits is the length of the prefix: 24 to 48, a multiple of 4.
	Bits int
	// Manufacturer is shown to people and decides nothing.
	Manufacturer string
	// Protocol is Redfish, RedfishLocal or RedfishWithRegistryPatch.
	Protocol string
	// Scheme is https or http.
	Scheme string
	// Port is 1 to 65535.
	Port int32
	// Type is "bmc".
	Type string
	// DefaultCredentials are factory accounts, to be tried in this order, once each.
	DefaultCredentials []Credential
	// CredentialsSecretRef names a Secret in the manager's namespace that holds them instead; empty means none.
	CredentialsSecretRef string
	// Console is nil where nothing is known about it.
	Console *Console
	// Line is where the row begins in its file.
	Line int
}

// IsBMC says that devices of the row are BMCs.
func (r Row) IsBMC() bool { return r.Type == "bmc" }

// Credential is one factory account.
type Credential struct{ Username, Password string }

// Console is how the serial console of the machine is reached.
type Console struct {
	// Type is IPMI, SSH or SSHLenovo.
	Type string
	Port int32
}

// Database is immutable and safe for use by many goroutines at once.
type Database struct {
	rows []Row
	// index finds a row by its prefix; digits lists the lengths in use, longest first.
	index  map[prefixKey]int
	digits []int
}

type prefixKey struct {
	value  uint64
	digits int
}

// Len returns the number of rows.
func (d *Database) Len() int { return len(d.rows) }

// Rows returns a copy of all rows in the order of the file.
func (d *Database) Rows() []Row { return slices.Clone(d.rows) }

// Lookup returns the row with the longest prefix of mac. Any spelling that Normalize accepts works; one that it
// refuses has no row, so callers that need to tell the two apart normalise first.
//
// A locally administered address matches a row only where the row itself spells out a locally administered prefix: the
// bit is never masked away to guess at a vendor.
func (d *Database) Lookup(mac string) (Row, bool) {
	if d == nil {
		return Row{}, false
	}
	value, err := parseMAC(mac)
	if err != nil {
		return Row{}, false
	}
	for _, digits := range d.digits {
		key := prefixKey{value >> (4 * (macDigits - digits)), digits}
		if i, ok := d.index[key]; ok {
			return d.rows[i], true
		}
	}
	return Row{}, false
}

func (d *Database) add(row Row, key prefixKey) {
	d.index[key] = len(d.rows)
	d.rows = append(d.rows, row)
	if at, found := slices.BinarySearchFunc(d.digits, key.digits, func(have, want int) int { return want - have }); !found {
		d.digits = slices.Insert(d.digits, at, key.digits)
	}
}

// sameContent compares what two rows say, wherever they stand.
func sameContent(a, b Row) bool {
	a.Line = b.Line
	return reflect.DeepEqual(a, b)
}
