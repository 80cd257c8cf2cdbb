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
	have, seen := map[policyv1alpha1.DiskKey]int{}, map[policyv1alpha1.DiskKey]int{}
	for _, disk := range known {
		have[disk.Key()]++
	}
	for _, device := range devices {
		if device.Removable || device.ReadOnly || device.Remote() {
			continue
		}
		disk := custodyDisk(device)
		key := disk.Key()
		seen[key]++
		// A disk with two paths is seen twice under its one wwid; two disks may well share a careless serial number.
		if seen[key] > have[key] && (key.By != "wwid" || have[key] == 0) {
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
	found := map[policyv1alpha1.DiskKey]int{}
	for _, disk := range erased {
		found[policyv1alpha1.DiskKey{By: "wwid", Value: disk.WWID}]++
		found[policyv1alpha1.DiskKey{By: "serial", Value: disk.Serial}]++
		found[policyv1alpha1.DiskKey{By: "name", Value: diskName(disk.Name, disk.Path)}]++
	}
	var left []policyv1alpha1.CustodyDisk
	for _, disk := range remembered {
		key := disk.Key()
		if found[key] == 0 {
			left = append(left, disk)
		} else if key.By != "wwid" {
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
		if key := disk.Key(); key.By == "wwid" || key.By == "serial" {
			name += fmt.Sprintf(" (%s %.60s)", key.By, key.Value)
		}
		names = append(names, name)
	}
	return "the wipe did not cover every disk of this machine; not erased, because not seen: " + strings.Join(names, ", ") +
		". Bring them back and retry; where a disk is out of the machine for good, attest it first (metalaw server attest)"
}
