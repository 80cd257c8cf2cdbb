// SPDX-License-Identifier: Apache-2.0

package drives

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// Seen is a disk that the agent saw, whatever became of it: erased, skipped, excused or failed.
type Seen struct {
	// Serial and WWID are as the kernel shows them; either may be empty.
	Serial, WWID string
	// Name is that of the kernel, such as nvme0n1. It identifies nothing.
	Name string
}

// The reasons that stand in a record.
const (
	reasonHidden = "The BMC lists this drive, and the agent did not see it. " +
		"Take it out, make it visible to the kernel, or excuse it by its serial number or slot."
	reasonBehind = "behind a volume, not seen"
	reasonSpare  = reasonBehind + ": a spare or unassigned drive, which no volume uses. Its data was not erased."
)

// Unseen compares the drives of a reading that listed them with the disks that the agent saw. hidden are those that it
// did not see; covered are those behind an adapter that shows volumes, with spare and unassigned ones named. Each disk
// shows one drive.
func Unseen(storage *policyv1alpha1.BMCStorage, seen []Seen) (hidden, covered []policyv1alpha1.HiddenStorage) {
	if storage == nil || storage.State != policyv1alpha1.BMCStorageListed {
		return nil, nil
	}
	listed := distinct(storage.Drives)
	shown := match(listed, seen)
	for i := range listed {
		d := &listed[i].drive
		switch {
		case shown[i]:
		case d.BehindVolume && d.Spare:
			covered = append(covered, named(d, reasonSpare))
		case d.BehindVolume:
			covered = append(covered, named(d, reasonBehind))
		default:
			hidden = append(hidden, named(d, reasonHidden))
		}
	}
	return hidden, covered
}

func named(d *policyv1alpha1.BMCDrive, reason string) policyv1alpha1.HiddenStorage {
	return policyv1alpha1.HiddenStorage{Source: policyv1alpha1.HiddenByBMC, Slot: d.Slot, Name: d.Name, Model: d.Model,
		Serial: d.Serial, SizeBytes: d.CapacityBytes, Reason: reason}
}

// Fresh says that the last reading, whatever it said, is of this entry and no older than what was wanted.
func Fresh(storage *policyv1alpha1.BMCStorage, entry int64, wanted *metav1.MicroTime) bool {
	return storage != nil && storage.Entry == entry && (wanted == nil || !storage.ReadAt.Time.Before(wanted.Time))
}

// Settled says that the last reading is Fresh and complete: the BMC listed its drives, or has no list of them.
func Settled(storage *policyv1alpha1.BMCStorage, entry int64, wanted *metav1.MicroTime) bool {
	return Fresh(storage, entry, wanted) && storage.State != policyv1alpha1.BMCStorageUnread
}

// Withheld says why a reading proves less than a former one did: the BMC listed drives before and does not now. It is
// empty where the BMC lists its drives, and where it never did.
func Withheld(storage *policyv1alpha1.BMCStorage) string {
	if storage == nil || !storage.ListedBefore || storage.State == policyv1alpha1.BMCStorageListed {
		return ""
	}
	how := "lists none now"
	if storage.State == policyv1alpha1.BMCStorageUnread {
		how = "could not be asked for all of them now"
	}
	text := fmt.Sprintf("The BMC listed %d drives before and %s. Mend the BMC, then retry.", len(storage.Drives), how)
	if storage.Problem != "" {
		text += " " + storage.Problem
	}
	return text[:min(len(text), maxText)]
}

// maxText is what a reason may have in the API.
const maxText = 1024
