// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"slices"
	"strings"
)

// DiskKey is what a remembered disk is known by: its wwid, without one its serial number, without both its name.
type DiskKey struct{ By, Value string }

// Key takes the strongest identity that a disk has; the zero key where it has none. Zeros and placeholders identify nothing.
func (d CustodyDisk) Key() DiskKey {
	switch {
	case DiskIdentifies(d.WWID):
		return DiskKey{"wwid", d.WWID}
	case DiskIdentifies(d.Serial):
		return DiskKey{"serial", d.Serial}
	case d.Name != "":
		return DiskKey{"name", d.Name}
	}
	return DiskKey{}
}

// Believed says that a report came with a token, and that its entry was not voided. Another report says nothing of other machines.
func (r *ProbeReport) Believed() bool { return r != nil && !r.Unauthenticated && !r.Voided }

// RememberedDisk is what custody keeps of a disk that an agent reported.
func (d *BlockDevice) RememberedDisk() CustodyDisk {
	return CustodyDisk{
		Name: diskName(d.Name, d.Path), Serial: d.Serial, WWID: d.WWID, SizeBytes: d.SizeBytes, Transport: d.Transport,
		Removable: d.Removable,
	}
}

// RememberedDisk is what custody would keep of a disk that a wipe reported.
func (d *DiskWipe) RememberedDisk() CustodyDisk {
	return CustodyDisk{
		Name: diskName(d.Name, d.Path), Serial: d.Serial, WWID: d.WWID, SizeBytes: d.SizeBytes, Transport: d.Transport,
	}
}

// diskName is the kernel's name of a disk; agents of others may give its path only.
func diskName(name, path string) string { return cmp.Or(name, strings.TrimPrefix(path, "/dev/")) }

// oneHost says that a disk of a transport has one port, so that two serial numbers are two disks. A SAS drive has two ports and may be
// shared.
func oneHost(transport string) bool {
	return transport == "sata" || transport == "ata" || transport == "nvme/pcie"
}

// TwoDisks says that two disks with one wwid are two all the same: batches of disks with one WWN exist. Serial numbers tell them apart
// where one of them is attached by SATA, or by NVMe over PCIe.
func TwoDisks(a, b CustodyDisk) bool {
	return differ(a.Serial, b.Serial) && (oneHost(a.Transport) || oneHost(b.Transport))
}

// differ says that two serial numbers are two; a placeholder differs from none.
func differ(one, other string) bool {
	return DiskIdentifies(one) && DiskIdentifies(other) && !strings.EqualFold(strings.TrimSpace(one), strings.TrimSpace(other))
}

// OneDisk says that two disks are paths to one: they have one wwid that identifies, and nothing tells them apart.
func OneDisk(a, b CustodyDisk) bool {
	return DiskIdentifies(a.WWID) && a.WWID == b.WWID && !TwoDisks(a, b)
}

// Unattested gives those of some disks for which no person answers. One attested disk stands for one disk, whose paths count as one. A
// disk without any identity is never attested. The custody may be nil.
func (c *Custody) Unattested(disks []CustodyDisk) []CustodyDisk {
	if c == nil {
		return disks
	}
	attested := make([]CustodyDisk, len(c.Attested))
	for i := range c.Attested {
		attested[i] = c.Attested[i].CustodyDisk
	}
	return notPaired(disks, attested, func(d, a CustodyDisk) int {
		if key := d.Key(); key == (DiskKey{}) || key != a.Key() {
			return 0
		}
		return found(d, a)
	})
}

// Remember adds the disks that an agent sees to those that are remembered, each path to a disk left out. A remembered disk that is
// among them gets what it lacks of an identity: what a former agent said less of is no second disk.
func Remember(known, seen []CustodyDisk) []CustodyDisk {
	known = slices.Clone(known)
	_, firsts := fold(seen, OneDisk)
	taken := make([]bool, len(firsts))
	for i, at := range pairUp(known, firsts, found) {
		if at < 0 {
			continue
		}
		taken[at] = true
		known[i].WWID = cmp.Or(known[i].WWID, firsts[at].WWID)
		known[i].Serial = cmp.Or(known[i].Serial, firsts[at].Serial)
		known[i].Transport = cmp.Or(known[i].Transport, firsts[at].Transport)
	}
	count := len(known)
	for i, disk := range firsts {
		path := func(other CustodyDisk) bool { return OneDisk(other, disk) }
		if !taken[i] && !slices.ContainsFunc(known[:count], path) {
			known = append(known, disk)
		}
	}
	return known
}

// Besides gives those of some disks that others do not name already.
func Besides(disks, named []CustodyDisk) []CustodyDisk {
	return slices.DeleteFunc(slices.Clone(disks), func(d CustodyDisk) bool {
		return slices.ContainsFunc(named, func(other CustodyDisk) bool { return d.Key() == other.Key() && !TwoDisks(d, other) })
	})
}

// NotErased gives the remembered disks that are not among the erased. One erased disk stands for one remembered disk, whatever both are
// known by. A remembered disk without any identity is never found.
func NotErased(remembered, erased []CustodyDisk) []CustodyDisk {
	return notPaired(remembered, erased, found)
}

// NotCovered gives the disks of a report that are not among the erased of the same boot, in which paths stay what they are.
func NotCovered(reported, erased []CustodyDisk) []CustodyDisk {
	return notPaired(reported, erased, sameBoot)
}

// SameDisk says that a disk of a report is one of a wipe, by the strongest identity that both have. Its name decides where the report
// has none, or both show the same placeholders.
func SameDisk(reported, erased CustodyDisk) bool {
	rank, none := sameBoot(reported, erased), reported.WWID == "" && reported.Serial == ""
	return rank > byName || rank == byName && (none || reported.WWID == erased.WWID && reported.Serial == erased.Serial)
}
