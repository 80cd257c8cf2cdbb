// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// OutlivesServer says whether a mark belongs to the machine's custody, where it outlives the Server object. Dirty does:
// the data stays on the disks. Stranger does: that no user has given us the machine. Managed does not: who deletes a
// Server gives its machine away, and one that is found again running may by then be another owner's.
func OutlivesServer(mark string) bool { return mark == MarkDirty || mark == MarkStranger }

// Inherited is a mark that a lifecycle begins with, and why.
type Inherited struct {
	// Mark is MarkDirty, MarkManaged or MarkStranger; Why says in words what tells so.
	Mark, Why string
}

// Inheritance lists the marks of a server whose status is gone or was never written by us, sorted: what its inventory
// keeps, and what must be feared or may be relied on by what its status and its reference say. A machine that is Available
// or Initial by another operator's word, and of which nothing of ours tells, is one seen for the first time: whether it may
// be stopped is for the bundle's setting to say. A claim's reference alone says that there may be data, and nothing of
// who booted the machine: the claim itself, once both references agree, does.
func Inheritance(s *v1alpha1.Server, inv *policyv1alpha1.ServerInventory, proof Proof) []Inherited {
	// That the machine is ours an agent of ours must have said: an inventory may also begin with what a machine is feared to
	// hold that was never booted by us.
	stranger, lost := KeptStranger(inv), lost(s, inv)
	data, booted := leftBehind(s.Status.State)
	if !known(s.Status.State) {
		data = !provenClean(inv)
	}
	var all []Inherited
	for _, c := range []struct {
		holds bool
		Inherited
	}{
		{KeptDirty(inv), Inherited{MarkDirty, "its inventory says so"}},
		{s.Spec.ServerClaimRef != nil, Inherited{MarkDirty, "it names a claim"}},
		{lost && !(proof.Clean && Pruned(s, inv)), Inherited{MarkDirty, lostWords(proof)}},
		{data, Inherited{MarkDirty, fmt.Sprintf("a machine in state %s may hold a claim's data", s.Status.State)}},
		{booted && !stranger, Inherited{MarkManaged, fmt.Sprintf("a machine in state %s was booted by its operator", s.Status.State)}},
		{lost && ranOurAgent(inv) && s.Status.State == "" && !stranger, Inherited{MarkManaged, "it was ours before its status was lost"}},
		{stranger, Inherited{MarkStranger, "its inventory says that it was found running and not given to us since"}},
	} {
		if c.holds && (len(all) == 0 || all[len(all)-1].Mark != c.Mark) {
			all = append(all, c.Inherited)
		}
	}
	return all
}

// lost says that a lifecycle was stored on a server before: the finalizer is added after it. Another operator uses a
// finalizer of the same name and keeps no inventory.
func lost(s *v1alpha1.Server, inv *policyv1alpha1.ServerInventory) bool {
	return inv != nil && hasFinalizer(s, v1alpha1.FinalizerServer) && !onlyStranger(inv)
}

func lostWords(proof Proof) string {
	if proof.Why == "" {
		return "its status was lost"
	}
	return "its status was lost: " + proof.Why
}

// MarksOf are the marks of what was inherited; nil where there are none.
func MarksOf(inherited []Inherited) []string {
	var all []string
	for _, i := range inherited {
		all = append(all, i.Mark)
	}
	return all
}

// leftBehind says what a state that we know tells of a machine: that a holder's data may be on its disks, and that
// the program that put it there booted it.
func leftBehind(state v1alpha1.ServerState) (data, booted bool) {
	switch state {
	case v1alpha1.StateReserved, v1alpha1.StateReleased, v1alpha1.StateCleanup:
		return true, true
	case v1alpha1.StateDiscovery:
		return false, true // it was off before, and runs the probe image
	case v1alpha1.StateMaintenance:
		return true, false // a person's hands are on it, and a claim may have come before them
	default:
		return false, false
	}
}

// known says whether a state means the same in every bundle. One that another operator or a bundle of the site has
// named may have been entered with a holder's data on the disks.
func known(state v1alpha1.ServerState) bool {
	switch state {
	case "", v1alpha1.StateInitial, v1alpha1.StateObserving, v1alpha1.StateDiscovery, v1alpha1.StateAvailable, v1alpha1.StateReserved,
		v1alpha1.StateReleased, v1alpha1.StateCleanup, v1alpha1.StateMaintenance, v1alpha1.StateParked, v1alpha1.StateError,
		v1alpha1.StateDecommissioned:
		return true
	}
	return false
}

// provenClean says that the last thing which a machine's inventory tells is a verified wipe, with no holder since.
func provenClean(inv *policyv1alpha1.ServerInventory) bool {
	return inv != nil && inv.Custody != nil && inv.Custody.LastHolder == nil && !KeptDirty(inv) &&
		inv.Wipe != nil && wipedIn(inv, inv.Wipe.Entry)
}

// KeptDirty says that what outlives the Server marks the machine Dirty; inv may be nil.
func KeptDirty(inv *policyv1alpha1.ServerInventory) bool {
	return inv != nil && inv.Custody != nil && slices.Contains(inv.Custody.Marks, MarkDirty)
}

// KeptStranger says that what outlives the Server tells of a machine that was found running, and that is not ours; inv may
// be nil.
func KeptStranger(inv *policyv1alpha1.ServerInventory) bool {
	return inv != nil && inv.Custody != nil && slices.Contains(inv.Custody.Marks, MarkStranger)
}

// WithoutStranger is an inventory as it is once a user answers for what it tells of a machine that was found
// running; inv may be nil and is not changed.
func WithoutStranger(inv *policyv1alpha1.ServerInventory) *policyv1alpha1.ServerInventory {
	if !KeptStranger(inv) {
		return inv
	}
	inv = inv.DeepCopy()
	inv.Custody.Marks = slices.DeleteFunc(inv.Custody.Marks, func(m string) bool { return m == MarkStranger })
	return inv
}

// onlyStranger says that an inventory tells of nothing but that: neither an agent of ours nor a claim was on the machine.
func onlyStranger(inv *policyv1alpha1.ServerInventory) bool {
	return KeptStranger(inv) && !ranOurAgent(inv) && inv.Custody.LastHolder == nil && inv.Custody.TimesClaimed == 0 &&
		len(inv.Custody.Marks) == 1
}

// ranOurAgent says that a machine has run an image that we booted on it.
func ranOurAgent(inv *policyv1alpha1.ServerInventory) bool {
	return inv.Report != nil || inv.Wipe != nil
}

// LastEntry is the highest entry that a machine's inventory speaks of. A lifecycle that begins anew counts on from there,
// so that an old report or wipe never satisfies a new entry.
func LastEntry(inv *policyv1alpha1.ServerInventory) int64 {
	var last int64
	if inv != nil && inv.Report != nil {
		last = max(last, inv.Report.Entry)
	}
	if inv != nil && inv.Wipe != nil {
		last = max(last, inv.Wipe.Entry)
	}
	return last
}

func hasFinalizer(o metav1.Object, name string) bool {
	return slices.ContainsFunc(o.GetFinalizers(), func(f string) bool { return strings.EqualFold(f, name) })
}
