// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"slices"
	"strings"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

// prove judges the end of a wipe. A verified one stands only where it covers every disk that the machine is known to have: those that
// the same agent reported, and those that are remembered from before, unless the policy excuses them or a person answers for them.
// Storage that no disk shows is named, and fails it where the policy says so.
func prove(stored *policyv1alpha1.ServerInventory, g grant, wipe *policyv1alpha1.WipeReport, asks Demands, now time.Time) *refusal {
	verified := wipe.State == policyv1alpha1.WipeVerified
	if report := stored.Report; verified &&
		(report == nil || report.Entry != g.entry || report.Unauthenticated || report.Purpose != policyv1alpha1.PurposeWipe) {
		return notExpected("a wipe cannot be verified before the server reported its disks", "register first")
	}
	if why := incomplete(stored, g, wipe, asks); verified && why != "" {
		wipe.State, wipe.Message, verified = policyv1alpha1.WipeFailed, why, false
	}
	list := bmcList(stored, g, asks, now)
	if verified && list == listAwaited {
		return awaitsBMC()
	}
	found := findings(stored, wipe, asks)
	tellHidden(stored, g, wipe, found, list)
	if verified && asks.FailHidden {
		failHidden(stored, wipe, found.Open(), list)
	}
	if wipe.State == policyv1alpha1.WipeVerified {
		wipe.ExcusedOnly = excusedOnly(wipe)
		forgetUnseen(stored.Custody, erasedOrExcused(wipe))
	}
	return nil
}

// incomplete says why a verified wipe does not cover the machine; empty where it does. A wipe that saw no disk at all covers none,
// because a controller that did not come up looks the same as a machine without disks.
func incomplete(stored *policyv1alpha1.ServerInventory, g grant, wipe *policyv1alpha1.WipeReport, asks Demands) string {
	if wipe.State != policyv1alpha1.WipeVerified {
		return ""
	}
	if left := uncovered(stored, wipe, asks); len(left) > 0 {
		return notCovered(left)
	}
	if len(erasedOrExcused(wipe)) == 0 {
		return mayHaveDisks(g.server)
	}
	return ""
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

// uncovered lists the disks that are known of and that a wipe left out. Removable media count where the policy has them erased.
func uncovered(stored *policyv1alpha1.ServerInventory, wipe *policyv1alpha1.WipeReport, asks Demands) []policyv1alpha1.CustodyDisk {
	var reported []policyv1alpha1.CustodyDisk
	for i := range stored.Report.Data.Storage {
		device := &stored.Report.Data.Storage[i]
		left := asks.EraseRemovable && !wipe.HiddenKnown && holdsMedium(device) // a former agent knows of no such demand
		if !device.Removable || left {
			reported = append(reported, device.RememberedDisk())
		}
	}
	dealtWith := erasedOrExcused(wipe)
	left := policyv1alpha1.NotCovered(reported, asRemembered(dealtWith))
	if stored.Custody == nil {
		return left
	}
	asked := slices.DeleteFunc(slices.Clone(stored.Custody.Disks), func(d policyv1alpha1.CustodyDisk) bool {
		return d.Removable && !asks.EraseRemovable
	})
	unseen := stored.Custody.Unattested(missing(asked, dealtWith))
	return append(left, policyv1alpha1.Besides(unseen, left)...)
}

// holdsMedium says that a removable device may hold data: it is no drive for optical or floppy disks, and can be written.
func holdsMedium(d *policyv1alpha1.BlockDevice) bool {
	name := diskName(d)
	return d.SizeBytes > 0 && !d.ReadOnly && !strings.HasPrefix(name, "sr") && !strings.HasPrefix(name, "fd")
}

func diskName(d *policyv1alpha1.BlockDevice) string { return d.RememberedDisk().Name }

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
