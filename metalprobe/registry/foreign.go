// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/metalprobe"
)

// maxIdentity bounds each word by which a disk is asked about, in bytes.
const maxIdentity = 256

// askedDisk reads the disk that a question is about; asked is false where it is about none.
func askedDisk(query url.Values) (disk metalprobe.DiskIdentity, asked bool, _ *refusal) {
	disk = metalprobe.DiskIdentity{WWID: query.Get("wwid"), Serial: query.Get("serial"), Model: query.Get("model")}
	size := query.Get("size")
	for _, word := range []string{disk.WWID, disk.Serial, disk.Model} {
		if len(word) > maxIdentity {
			return disk, true, invalid(fmt.Errorf("the identity of the disk has a word of %d bytes, at most %d are allowed", len(word), maxIdentity))
		}
	}
	if size != "" {
		bytes, err := strconv.ParseInt(size, 10, 64)
		if err != nil || bytes < 0 {
			return disk, true, invalid(errors.New("the size of the disk is no number of bytes"))
		}
		disk.SizeBytes = bytes
	}
	for _, name := range []string{"wwid", "serial", "model", "size"} {
		asked = asked || query.Has(name)
	}
	return disk, asked, nil
}

// ofAnother says why a disk may not be erased that another machine has as well; empty where it may. A disk of a machine without a
// Server was moved.
func (r *Registry) ofAnother(ctx context.Context, g grant, disk metalprobe.DiskIdentity) (string, error) {
	for _, key := range fieldindex.DiskKeys(disk.WWID, disk.Serial) {
		var list policyv1alpha1.ServerInventoryList
		err := r.options.Reader.List(ctx, &list, client.MatchingFields{fieldindex.InventoryByDisk: key}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return "", fmt.Errorf("finding the machines with disk %s: %w", key, err)
		}
		for i := range list.Items {
			other := &list.Items[i]
			if uuids.Same(other.Spec.SystemUUID, g.server.Spec.SystemUUID) || !hasDisk(other, disk) {
				continue
			}
			servers, err := r.candidates(ctx, other.Spec.SystemUUID)
			if err != nil {
				return "", err
			}
			if len(servers) > 0 {
				return fmt.Sprintf("Server %s has this disk in its inventory as well (%s), so that it may be shared. Where it was moved, "+
					"have that server inspected again; where it is erased on purpose, allow its wwid or serial number by the policy",
					servers[0].Name, key), nil
			}
		}
	}
	return "", nil
}

// hasDisk says that a machine reported a disk, or is remembered to have it. What a report without a token says, or one of a voided
// entry, counts for nothing: a stranger could keep the disks of others from being erased.
func hasDisk(inventory *policyv1alpha1.ServerInventory, disk metalprobe.DiskIdentity) bool {
	if inventory.Report.Believed() {
		for i := range inventory.Report.Data.Storage {
			d := &inventory.Report.Data.Storage[i]
			if sameIdentity(disk, d.RememberedDisk(), d.Model) {
				return true
			}
		}
	}
	if inventory.Custody != nil {
		for _, d := range inventory.Custody.Disks {
			if !d.Voided && sameIdentity(disk, d, "") {
				return true
			}
		}
	}
	return false
}

// sameIdentity compares by wwid where both have one, else by serial number and by what else both say. Disks of a batch with one wwid
// are told apart by their serial numbers.
func sameIdentity(asked metalprobe.DiskIdentity, other policyv1alpha1.CustodyDisk, model string) bool {
	disk := policyv1alpha1.CustodyDisk{Serial: asked.Serial, WWID: asked.WWID}
	if policyv1alpha1.DiskIdentifies(disk.WWID) && policyv1alpha1.DiskIdentifies(other.WWID) {
		return policyv1alpha1.OneDisk(disk, other)
	}
	differs := asked.Model != "" && model != "" && asked.Model != model ||
		asked.SizeBytes > 0 && other.SizeBytes > 0 && asked.SizeBytes != other.SizeBytes
	return policyv1alpha1.DiskIdentifies(disk.Serial) && disk.Serial == other.Serial && !differs
}

// proved gives the disks that the last wipe erased and checked before it failed on another one. They count only where everything
// says that the same holder's data is being erased still, and that the machine ran nothing but agents that wipe since: what is not
// known for certain gives none.
func proved(g grant, stored *policyv1alpha1.ServerInventory) []policyv1alpha1.DiskWipe {
	if stored == nil || stored.Wipe == nil || stored.Wipe.State != policyv1alpha1.WipeFailed || stored.Wipe.Entry >= g.entry {
		return nil
	}
	if !sameRelease(g.server, stored) || !ranOnlyWipes(g, stored) {
		return nil
	}
	var disks []policyv1alpha1.DiskWipe
	for _, disk := range stored.Wipe.Disks {
		identified := policyv1alpha1.DiskIdentifies(disk.WWID) || policyv1alpha1.DiskIdentifies(disk.Serial)
		if disk.State == policyv1alpha1.DiskVerified && identified {
			disks = append(disks, disk)
		}
	}
	return disks
}

// sameRelease says that the last wipe began after the data came, and that nobody held the machine since.
func sameRelease(server *metalv1alpha1.Server, stored *policyv1alpha1.ServerInventory) bool {
	c := stored.Custody
	return c != nil && c.LastHolder != nil && c.LastHolder.UID != "" && server.Spec.ServerClaimRef == nil &&
		string(c.LastHolder.UID) == server.Annotations[metalv1alpha1.ReleasedClaimAnnotation] &&
		c.DirtiedAt != nil && c.DirtiedAt.Time.Before(stored.Wipe.StartedAt.Time)
}

// ranOnlyWipes says that the machine was first shown on in the present entry by our boot, that no other agent reported since, and that
// each move since was one between wipe, Error and Initial.
func ranOnlyWipes(g grant, stored *policyv1alpha1.ServerInventory) bool {
	l, report := g.server.Status.Lifecycle, stored.Report
	ours := l != nil && l.SeenOnAt != nil && l.BootedAt != nil && l.BootedAt.Time.Equal(l.SeenOnAt.Time)
	return ours && report != nil && report.Purpose == policyv1alpha1.PurposeWipe && report.Entry >= stored.Wipe.Entry &&
		movedByRetry(l.History, stored.Wipe.Entry, g.entry)
}

// movedByRetry says that the history has each move from one entry to another, made by rules of the policy, that the two entries are of
// the same state, and that those between are of that state, of Error or of Initial, in which nothing is switched on.
func movedByRetry(history []metalv1alpha1.LifecycleMove, from, to int64) bool {
	var wipes metalv1alpha1.ServerState
	next := from
	for _, move := range history {
		if move.Entry < from {
			continue
		}
		if move.Entry != next || move.Rule == metalv1alpha1.RuleAdopted || move.By != "" {
			return false
		}
		if move.Entry == from {
			wipes = move.To
		}
		rests := move.To == metalv1alpha1.StateError || move.To == metalv1alpha1.StateInitial // a retry passes through both
		if move.To != wipes && (move.Entry == to || !rests) {
			return false
		}
		next++
	}
	return next == to+1
}
