// SPDX-License-Identifier: Apache-2.0

// Package twins tells two paths to one disk from two disks that show the same wwid.
package twins

import (
	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// Disk is what a disk is known by.
type Disk struct {
	Name, WWID, Serial string
	// Private says that a drive is one that only this machine reaches, by one path: SATA, or NVMe over PCIe.
	Private bool
}

// Of names the other disks that may be paths to the same disk. Whole batches of disks show one wwid: where both are
// private, different serial numbers tell two disks. What is zero or a placeholder tells nothing. SAS disks may be
// shared, so they stay twins.
func Of(disk Disk, others []Disk) []string {
	var found []string
	if !policyv1alpha1.DiskIdentifies(disk.WWID) {
		return nil
	}
	for _, other := range others {
		if other.Name != disk.Name && other.WWID == disk.WWID && !twoDisks(disk, other) {
			found = append(found, other.Name)
		}
	}
	return found
}

func twoDisks(a, b Disk) bool {
	return a.Private && b.Private && a.Serial != b.Serial &&
		policyv1alpha1.DiskIdentifies(a.Serial) && policyv1alpha1.DiskIdentifies(b.Serial)
}
