// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DiskKey is what a remembered disk is known by: its wwid, without one its serial number, without both its name.
type DiskKey struct{ By, Value string }

// Key takes the strongest identity that a disk has; the zero key where it has none.
func (d CustodyDisk) Key() DiskKey {
	switch {
	case d.WWID != "":
		return DiskKey{"wwid", d.WWID}
	case d.Serial != "":
		return DiskKey{"serial", d.Serial}
	case d.Name != "":
		return DiskKey{"name", d.Name}
	}
	return DiskKey{}
}

// Unattested gives those of some disks for which no person answers. One attested disk stands for one disk, but for a wwid, which no
// two disks share. A disk without any identity is never attested. The custody may be nil.
func (c *Custody) Unattested(disks []CustodyDisk) []CustodyDisk {
	if c == nil {
		return disks
	}
	attested := map[DiskKey]int{}
	for _, a := range c.Attested {
		attested[a.Key()]++
	}
	var left []CustodyDisk
	for _, d := range disks {
		switch key := d.Key(); {
		case attested[key] == 0 || key == DiskKey{}:
			left = append(left, d)
		case key.By != "wwid":
			attested[key]--
		}
	}
	return left
}
