// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

// remember notes which Server stands for the machine, and the fixed disks that an agent with a credential sees, so that a
// later wipe that does not see one of them does not pass for a wipe of the whole machine. The first report of a probe
// boot replaces the list, because a disk may have left the machine. Disks are only added where that could lose one: while
// the machine may hold data, by later reports of the same boot, and by the agent that wipes. A report without any storage
// says nothing about disks. The marks and the holder belong to the server controller.
func remember(stored *policyv1alpha1.ServerInventory, g grant, devices []policyv1alpha1.BlockDevice) {
	if stored.Custody == nil {
		stored.Custody = &policyv1alpha1.Custody{}
	}
	stored.Custody.ServerName = g.server.Name
	if g.unauthenticated || len(devices) == 0 {
		return
	}
	var known []policyv1alpha1.CustodyDisk
	if !replaces(stored, g) {
		known = slices.Clone(stored.Custody.Disks)
	}
	have, seen := map[diskKey]int{}, map[diskKey]int{}
	for _, disk := range known {
		have[keyOf(disk)]++
	}
	for _, device := range devices {
		if device.Removable || device.ReadOnly || device.Remote() {
			continue
		}
		disk := custodyDisk(device)
		key := keyOf(disk)
		seen[key]++
		// A disk with two paths is seen twice under its one wwid; two disks may well share a careless serial number.
		if seen[key] > have[key] && (key.by != "wwid" || have[key] == 0) {
			known = append(known, disk)
			have[key]++
		}
	}
	stored.Custody.Disks = known
}

// replaces says whether a report stands for the whole machine, and not only for what one boot sees of it.
func replaces(stored *policyv1alpha1.ServerInventory, g grant) bool {
	if g.purpose != metalv1alpha1.ProbePurposeProbe || mayHoldData(stored, g.server) {
		return false
	}
	former := stored.Report
	sameBoot := former != nil && former.Entry == g.entry && !former.Unauthenticated && former.Purpose == policyv1alpha1.PurposeProbe
	return !sameBoot
}

// mayHoldData asks every place that remembers it. The custody is written before the others, and before any data.
func mayHoldData(stored *policyv1alpha1.ServerInventory, server *metalv1alpha1.Server) bool {
	lifecycle := server.Status.Lifecycle
	return slices.Contains(stored.Custody.Marks, metalv1alpha1.MarkDirty) || server.Spec.ServerClaimRef != nil ||
		lifecycle != nil && slices.Contains(lifecycle.Marks, metalv1alpha1.MarkDirty)
}

// diskKey is what a remembered disk is known by.
type diskKey struct{ by, value string }

// keyOf takes the strongest identity that a disk has; the zero key where it has none.
func keyOf(disk policyv1alpha1.CustodyDisk) diskKey {
	switch {
	case disk.WWID != "":
		return diskKey{"wwid", disk.WWID}
	case disk.Serial != "":
		return diskKey{"serial", disk.Serial}
	case disk.Name != "":
		return diskKey{"name", disk.Name}
	}
	return diskKey{}
}

func custodyDisk(device policyv1alpha1.BlockDevice) policyv1alpha1.CustodyDisk {
	return policyv1alpha1.CustodyDisk{
		Name: diskName(device.Name, device.Path), Serial: device.Serial, WWID: device.WWID, SizeBytes: device.SizeBytes,
	}
}

// diskName is the kernel's name of a disk; agents of others may give its path only.
func diskName(name, path string) string { return cmp.Or(name, strings.TrimPrefix(path, "/dev/")) }

// missing gives the remembered disks that are not among the erased. One erased disk stands for one remembered disk,
// but for a wwid, which no two disks share. A remembered disk without any identity is never found.
func missing(remembered []policyv1alpha1.CustodyDisk, erased []policyv1alpha1.DiskWipe) []policyv1alpha1.CustodyDisk {
	found := map[diskKey]int{}
	for _, disk := range erased {
		found[diskKey{"wwid", disk.WWID}]++
		found[diskKey{"serial", disk.Serial}]++
		found[diskKey{"name", diskName(disk.Name, disk.Path)}]++
	}
	var left []policyv1alpha1.CustodyDisk
	for _, disk := range remembered {
		key := keyOf(disk)
		if found[key] == 0 {
			left = append(left, disk)
		} else if key.by != "wwid" {
			found[key]--
		}
	}
	return left
}

// maxNamed bounds the disks that a message names, so that the API stores it.
const maxNamed = 5

// notCovered says which disks a wipe left out, and what to do.
func notCovered(left []policyv1alpha1.CustodyDisk) string {
	names := make([]string, 0, maxNamed+1)
	for i, disk := range left {
		if i == maxNamed {
			names = append(names, fmt.Sprintf("and %d more", len(left)-maxNamed))
			break
		}
		name := fmt.Sprintf("%.40s", cmp.Or(disk.Name, "unnamed"))
		if key := keyOf(disk); key.by == "wwid" || key.by == "serial" {
			name += fmt.Sprintf(" (%s %.60s)", key.by, key.value)
		}
		names = append(names, name)
	}
	return "the wipe did not cover every disk of this machine; not erased, because not seen: " + strings.Join(names, ", ") +
		". Bring them back and retry; where a disk is out of the machine for good, take its entry off custody.disks first"
}
