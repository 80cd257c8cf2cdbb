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
//
// Removable media that are not the BMC's are remembered where the policy has them erased.
func remember(stored *policyv1alpha1.ServerInventory, g grant, devices []policyv1alpha1.BlockDevice, erasesRemovable bool) {
	if stored.Custody == nil {
		stored.Custody = &policyv1alpha1.Custody{}
	}
	stored.Custody.ServerName = g.server.Name
	if g.unauthenticated || len(devices) == 0 {
		return
	}
	var known []policyv1alpha1.CustodyDisk
	if !replaces(stored, g) {
		known = stored.Custody.Disks
	}
	var seen []policyv1alpha1.CustodyDisk
	for i := range devices {
		if d := &devices[i]; !d.ReadOnly && !d.Remote() && (!d.Removable || erasesRemovable && d.RemovableMedium()) {
			seen = append(seen, d.RememberedDisk())
		}
	}
	stored.Custody.Disks = firstTold(policyv1alpha1.Remember(known, seen), stored.Custody.Disks, seen, g.entry)
}

// firstTold notes the entry whose agent first told of each disk. A disk that an earlier agent told of is not doubted if a later entry is
// voided, and a disk of a voided entry is believed once a later agent sees it.
func firstTold(disks, former, seen []policyv1alpha1.CustodyDisk, entry int64) []policyv1alpha1.CustodyDisk {
	for i := range disks {
		d := &disks[i]
		same := func(other policyv1alpha1.CustodyDisk) bool { return policyv1alpha1.SameDisk(*d, other) }
		was := slices.IndexFunc(former, same)
		switch {
		case was >= 0 && !former[was].Voided:
			d.Entry, d.Voided = former[was].Entry, false
		case slices.ContainsFunc(seen, same):
			d.Entry, d.Voided = entry, false
		}
	}
	return disks
}

// doubt marks the disks of which nothing but a voided entry told.
func doubt(custody *policyv1alpha1.Custody, entry int64) {
	if custody == nil || entry == 0 {
		return
	}
	for i := range custody.Disks {
		if custody.Disks[i].Entry == entry {
			custody.Disks[i].Voided = true
		}
	}
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

// missing gives the remembered disks that are not among the erased.
func missing(remembered []policyv1alpha1.CustodyDisk, erased []policyv1alpha1.DiskWipe) []policyv1alpha1.CustodyDisk {
	return policyv1alpha1.NotErased(remembered, asRemembered(erased))
}

func asRemembered(erased []policyv1alpha1.DiskWipe) []policyv1alpha1.CustodyDisk {
	disks := make([]policyv1alpha1.CustodyDisk, len(erased))
	for i := range erased {
		disks[i] = erased[i].RememberedDisk()
	}
	return disks
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
		switch key := disk.Key(); {
		case key.By == "wwid" && policyv1alpha1.DiskIdentifies(disk.Serial):
			name += fmt.Sprintf(" (%s %.60s, serial %.60s)", key.By, key.Value, disk.Serial)
		case key.By == "wwid", key.By == "serial":
			name += fmt.Sprintf(" (%s %.60s)", key.By, key.Value)
		}
		names = append(names, name)
	}
	return "the wipe did not cover every disk of this machine; not erased, because not seen: " + strings.Join(names, ", ") +
		". Bring them back and retry; where a disk is out of the machine for good, attest it first (metalaw server attest)"
}
