// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"slices"
	"strings"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/internal/drives"
)

// ListPatience is how long a judgement waits for the drives that the BMC lists. After it they are not known.
const ListPatience = 2 * time.Minute

// withheldRetry is how often a blank check looks again whether a BMC lists its drives that did so before.
const withheldRetry = 10 * time.Second

// InEntry is the hidden storage that the report of an entry, and the BMC's list of that entry, show.
func InEntry(inv *policyv1alpha1.ServerInventory, entry int64, excused []string) Findings {
	if inv == nil || inv.Report == nil || inv.Report.Entry != entry {
		return Findings{}
	}
	in := reported(inv, excused)
	if inv.BMCStorage != nil && inv.BMCStorage.Entry == entry {
		in.Storage = inv.BMCStorage
	}
	return Judge(in)
}

// Last is the hidden storage that is known of a machine at present: by the last word of an agent, and by the last list
// of its BMC. Where that could not be read anew, the drives that it listed before stand.
func Last(inv *policyv1alpha1.ServerInventory, excused []string) Findings {
	if inv == nil || inv.Report == nil {
		return Findings{}
	}
	in := reported(inv, excused)
	if w := inv.Wipe; w != nil && w.HiddenKnown && w.Entry >= inv.Report.Entry {
		in.Agent = slices.DeleteFunc(slices.Clone(w.Hidden), func(h policyv1alpha1.HiddenStorage) bool {
			return h.Source != policyv1alpha1.HiddenByAgent
		})
	}
	if s := inv.BMCStorage; s != nil && s.Entry >= inv.Report.Entry {
		in.Storage = s
		if s.State == policyv1alpha1.BMCStorageUnread {
			in.Storage = s.DeepCopy()
			in.Storage.State = policyv1alpha1.BMCStorageListed
		}
	}
	return Judge(in)
}

// Known says that an agent looked for hidden storage; former agents do not.
func Known(inv *policyv1alpha1.ServerInventory) bool {
	if inv == nil {
		return false
	}
	return inv.Report != nil && inv.Report.Data.HiddenKnown || inv.Wipe != nil && inv.Wipe.HiddenKnown
}

func reported(inv *policyv1alpha1.ServerInventory, excused []string) Input {
	in := Input{Agent: inv.Report.Data.Hidden, Excused: excused}
	for i := range inv.Report.Data.Storage {
		in.Disks = append(in.Disks, inv.Report.Data.Storage[i].RememberedDisk())
	}
	if inv.Custody != nil {
		in.Attested = inv.Custody.AttestedHidden
	}
	return in
}

// AwaitsList is how long a blank check still waits for a reading of the BMC's list that the registry asked for since
// an entry began; 0 where none is awaited. A BMC that listed drives before is waited for until it lists them: the
// deadline of the state ends that.
func AwaitsList(inv *policyv1alpha1.ServerInventory, entry int64, enteredAt, now time.Time) time.Duration {
	if inv == nil || inv.BMCStorageWanted == nil || inv.BMCStorageWanted.Time.Before(enteredAt) {
		return 0
	}
	left := ListPatience - now.Sub(inv.BMCStorageWanted.Time)
	switch {
	case drives.Withheld(inv.BMCStorage) != "":
		return max(left, withheldRetry)
	case drives.Settled(inv.BMCStorage, entry, inv.BMCStorageWanted):
		return 0
	}
	return max(left, 0)
}

// Doubtful are removable media of which it is not known how they are attached: some RAID drivers call every volume
// removable.
func Doubtful(inv *policyv1alpha1.ServerInventory) []string {
	if inv == nil || inv.Report == nil {
		return nil
	}
	var names []string
	for i := range inv.Report.Data.Storage {
		d := &inv.Report.Data.Storage[i]
		unknown := d.Transport == "unknown" || strings.HasSuffix(d.Transport, "/unknown")
		if name := d.RememberedDisk().Name; d.Removable && unknown && !strings.HasPrefix(name, "sr") && !strings.HasPrefix(name, "fd") {
			names = append(names, cut(name))
		}
	}
	return names
}
