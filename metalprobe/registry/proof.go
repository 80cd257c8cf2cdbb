// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"slices"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

// prove lets a verified wipe stand only where it covers every disk that the machine is known to have and that no policy excuses: those that the
// same agent reported, and those that are remembered from before, which this boot may not see, but for which no person answers. Else
// the wipe failed. It failed, too, where it saw no disk at all, because a controller that did not come up looks the same as a
// machine without disks.
func prove(stored *policyv1alpha1.ServerInventory, g grant, wipe *policyv1alpha1.WipeReport) *refusal {
	report := stored.Report
	if report == nil || report.Entry != g.entry || report.Unauthenticated || report.Purpose != policyv1alpha1.PurposeWipe {
		return notExpected("a wipe cannot be verified before the server reported its disks", "register first")
	}
	if left := uncovered(stored, wipe); len(left) > 0 {
		wipe.State, wipe.Message = policyv1alpha1.WipeFailed, notCovered(left)
		return nil
	}
	if len(erasedOrExcused(wipe)) == 0 {
		if why := mayHaveDisks(g.server); why != "" {
			wipe.State, wipe.Message = policyv1alpha1.WipeFailed, why
			return nil
		}
	}
	forgetUnseen(stored.Custody, erasedOrExcused(wipe))
	return nil
}

// forgetUnseen takes the disks off that a verified wipe did not see: a person said that they are out of the machine. Later wipes need
// not be told that again; a disk that comes back is seen, and remembered anew.
func forgetUnseen(c *policyv1alpha1.Custody, dealtWith []policyv1alpha1.DiskWipe) {
	if c == nil || len(c.Attested) == 0 {
		return
	}
	for _, gone := range missing(c.Disks, dealtWith) {
		i := slices.Index(c.Disks, gone)
		c.Disks = slices.Delete(c.Disks, i, i+1)
	}
}

// uncovered lists the disks that are known of and that a wipe left out.
func uncovered(stored *policyv1alpha1.ServerInventory, wipe *policyv1alpha1.WipeReport) []policyv1alpha1.CustodyDisk {
	var reported []policyv1alpha1.CustodyDisk
	for i := range stored.Report.Data.Storage {
		if device := &stored.Report.Data.Storage[i]; !device.Removable {
			reported = append(reported, device.RememberedDisk())
		}
	}
	dealtWith := erasedOrExcused(wipe)
	left := policyv1alpha1.NotCovered(reported, asRemembered(dealtWith))
	if stored.Custody == nil {
		return left
	}
	unseen := stored.Custody.Unattested(missing(stored.Custody.Disks, dealtWith))
	return append(left, policyv1alpha1.Besides(unseen, left)...)
}

// erasedOrExcused lists the disks that a wipe erased, and those that the policy in the agent's configuration excuses.
func erasedOrExcused(wipe *policyv1alpha1.WipeReport) []policyv1alpha1.DiskWipe {
	disks := slices.Clone(wipe.Disks)
	for _, d := range wipe.Skipped {
		if d.Excused {
			disks = append(disks, policyv1alpha1.DiskWipe{
				Path: d.Path, Name: d.Name, Serial: d.Serial, WWID: d.WWID, SizeBytes: d.SizeBytes, Transport: d.Transport,
			})
		}
	}
	return disks
}

// mayHaveDisks says why a machine in which no agent sees a disk may have one all the same; empty where it is known to
// have none.
func mayHaveDisks(server *metalv1alpha1.Server) string {
	if drives := drivesOf(server); drives > 0 {
		return fmt.Sprintf("no disk was seen, though the BMC shows %d; see whether the disk controller works for the wipe image, and retry", drives)
	}
	if server.Annotations[metalv1alpha1.DisklessAnnotation] == "true" {
		return ""
	}
	return "no disk was seen; see whether the disk controller works for the wipe image, and retry. Where the machine has no disk, set " +
		"annotation " + metalv1alpha1.DisklessAnnotation + `: "true" on its Server first`
}

// drivesOf counts what the BMC shows.
func drivesOf(server *metalv1alpha1.Server) int {
	drives := 0
	for _, storage := range server.Status.Storages {
		for _, drive := range storage.Drives {
			if drive.State != metalv1alpha1.StorageStateAbsent {
				drives++
			}
		}
	}
	return drives
}
