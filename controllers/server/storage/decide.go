// SPDX-License-Identifier: Apache-2.0

// Package storage has the leader read the drives that a BMC lists, and keeps what it said in the ServerInventory.
// Whether a reading is due and what is made of it are pure; Reader asks the BMC in the background and writes.
package storage

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/access"
	listing "github.com/metalaw/metalaw/internal/drives"
	"github.com/metalaw/metalaw/redfish/drives"
)

// Wish is why a reading is due: an entry in which the agent was heard, and the time before which a reading does not
// count. That is when the entry began, or when the registry asked for a newer one.
type Wish struct {
	Entry  int64
	Wanted time.Time
}

func (w Wish) wanted() *metav1.MicroTime {
	at := metav1.NewMicroTime(w.Wanted)
	return &at
}

// Due says whether the drives of a server are to be read, and for what: after the first word of the agent in an entry,
// because many BMCs list drives only after POST, and whenever the registry wants a newer reading. A list that could not
// be read, or that is missing where the BMC had one before, is read again.
func Due(server *v1alpha1.Server, inventory *policyv1alpha1.ServerInventory) (Wish, bool) {
	l := server.Status.Lifecycle
	if l == nil || inventory == nil || !heard(inventory, l.Entry) {
		return Wish{}, false
	}
	wish := Wish{Entry: l.Entry, Wanted: l.EnteredAt.Time}
	if w := inventory.BMCStorageWanted; w != nil && w.After(wish.Wanted) {
		wish.Wanted = w.Time
	}
	settled := listing.Settled(inventory.BMCStorage, wish.Entry, wish.wanted())
	return wish, !settled || listing.Withheld(inventory.BMCStorage) != ""
}

// heard says that an agent of this entry gave a sign of life: a key, a phase, a report, or a word about a wipe.
func heard(inventory *policyv1alpha1.ServerInventory, entry int64) bool {
	return inventory.Enrolment != nil && inventory.Enrolment.Entry == entry ||
		inventory.Phase != nil && inventory.Phase.Entry == entry ||
		inventory.Report != nil && inventory.Report.Entry == entry ||
		inventory.Wipe != nil && inventory.Wipe.Entry == entry
}

// Answer is what came of a reading.
type Answer struct {
	List drives.List
	// Err is why the list, or a part of it, could not be read.
	Err error
	// At is when the BMC was asked.
	At time.Time
}

// Result is what is stored of an answer, and whether it is worth a write. It is not where nothing newer was wanted and
// the state is the same.
func Result(former *policyv1alpha1.BMCStorage, wish Wish, a Answer) (next *policyv1alpha1.BMCStorage, write bool) {
	at := a.At
	if at.Before(wish.Wanted) { // the clock of another process may be ahead of this one
		at = wish.Wanted
	}
	next = &policyv1alpha1.BMCStorage{ReadAt: metav1.NewMicroTime(at), Entry: wish.Entry}
	switch {
	case a.Err != nil:
		next.State = policyv1alpha1.BMCStorageUnread
		text, _ := access.Describe(a.Err)
		next.Problem = clip(text)
	case len(a.List.Drives) == 0:
		next.State, next.Problem = policyv1alpha1.BMCStorageNotOffered, left(a.List)
	default:
		next.State, next.Problem, next.ListedBefore = policyv1alpha1.BMCStorageListed, left(a.List), true
		for _, d := range a.List.Drives {
			next.Drives = append(next.Drives, policyv1alpha1.BMCDrive{Name: d.Name, Slot: d.Slot, Model: d.Model,
				Serial: d.Serial, DurableNames: d.DurableNames, CapacityBytes: d.CapacityBytes, Protocol: d.Protocol,
				BehindVolume: d.BehindVolume, Spare: d.Spare})
		}
	}
	if former != nil && next.State != policyv1alpha1.BMCStorageListed {
		next.ListedBefore, next.Drives = former.ListedBefore, former.Drives
	}
	answered := listing.Fresh(former, wish.Entry, wish.wanted())
	return next, !answered || former.State != next.State
}

func left(l drives.List) string {
	if l.Left == "" {
		return ""
	}
	return clip("The BMC lists drives that do not count. " + l.Left)
}

// maxProblem is what a problem may have in the API.
const maxProblem = 1024

func clip(s string) string {
	if len(s) <= maxProblem {
		return s
	}
	return fmt.Sprintf("%.*s...", maxProblem/4-3, s) // counted in characters, which have at most four bytes
}
