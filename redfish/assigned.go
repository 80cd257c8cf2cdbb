// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"slices"
	"strings"
)

// Shows reports that a system, as it was read, is the one that is wanted. One with an assigned UUID is proven by its serial
// number and MAC address at each reading, because it shows no UUID; one that comes to show another UUID is another.
func Shows(want Identity, s SystemSnapshot) bool {
	got := s.Identity
	if !want.Assigned {
		return SameSystem(want, got)
	}
	wantSerial := cleanSerial(want.SerialNumber)
	switch {
	case cleanUUID(want.UUID) == "":
		return false
	case cleanUUID(got.UUID) != "" && !SameSystem(Identity{UUID: want.UUID}, got):
		return false
	case wantSerial == "" && want.MAC == "":
		return false
	case wantSerial != "" && !strings.EqualFold(wantSerial, cleanSerial(got.SerialNumber)):
		return false
	}
	return want.MAC == "" || slices.ContainsFunc(s.NICs, func(n NIC) bool { return n.MACAddress == want.MAC })
}

// systemFor reads a system with what it takes to prove that it is the one that is wanted.
func (o *operation) systemFor(uri string, want Identity) (*systemDoc, SystemSnapshot, error) {
	doc, snapshot, err := o.system(uri)
	if err != nil || !want.Assigned || want.MAC == "" {
		return doc, snapshot, err
	}
	snapshot.NICs, snapshot.NICsIncomplete, err = o.hostNICs(doc)
	return doc, snapshot, err
}

// withoutOverride reports that no boot override can be set: Cray EX shows boot order and boot options and nothing else. It takes one
// of the two, because a BMC that starts may show no boot settings, or empty ones, which says nothing.
func (d *systemDoc) withoutOverride() bool {
	boot := d.Boot.Value
	bootable := len(boot.Order.Values) > 0 || boot.Options != ""
	return bootable && boot.Enabled == "" && boot.Target == "" && !boot.Allowed.Present && d.Settings.Value.SettingsObject == ""
}

// powerOnByOrder switches a system on that is Off and shows no boot override.
func (o *operation) powerOnByOrder(uri string, want Identity) error {
	doc, snapshot, err := o.checked(uri, want)
	if err != nil {
		return err
	}
	if err := notOff(snapshot); err != nil {
		return err
	}
	if !snapshot.Boot.Missing {
		return &UnsupportedError{URI: uri, Wanted: "booting without an override", Hint: "it shows an override, which has to be set"}
	}
	return o.reset(uri, want, doc, ActionOn, string(doc.ETag))
}
