// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/internal/restored"
)

// heard says that the agent which this entry booted gave a sign of life: a report, a phase, a key, or a word about a wipe.
func (o Observation) heard(entry int64) bool {
	inv := o.Inventory
	if inv == nil {
		return false
	}
	report := inv.Report != nil && inv.Report.Entry == entry && o.believes(inv.Report)
	return report || inv.Phase != nil && inv.Phase.Entry == entry || inv.Enrolment != nil && inv.Enrolment.Entry == entry ||
		inv.Wipe != nil && inv.Wipe.Entry == entry
}

// believes says that a report counts: it came with a token, or the policy asks for none, and its entry was not voided.
func (o Observation) believes(r *policyv1alpha1.ProbeReport) bool {
	return !ReportVoided(o.Inventory) &&
		(!r.Unauthenticated || o.Settings.AllowUnauthenticated && o.doubt() == restored.None)
}

// unheard says that the machine was on for boot.firstWord, and that the agent which this entry booted was not heard.
func (o Observation) unheard(f *Facts) bool {
	left, waits := o.untilFirstWord(f.Boot.Purpose)
	return waits && left <= 0 && f.Wipe.Entry != f.Lifecycle.Entry
}

// FirstWordIn is how long the agent that was booted may still take until it is heard; 0 where none is waited for.
func FirstWordIn(o Observation, f *Facts) time.Duration {
	left, _ := o.untilFirstWord(f.Boot.Purpose)
	return max(0, left)
}

// untilFirstWord is how long the agent may still take, and whether one is waited for. A later power-on of the same entry gives it
// all its time again, and time that does not count against deadlines is not held against it either. That the machine was on
// is remembered for as long as the entry lasts, so that it stays unheard once it is off.
func (o Observation) untilFirstWord(purpose string) (left time.Duration, waits bool) {
	l := o.Server.Status.Lifecycle
	ours := purpose == v1alpha1.BootPurposeProbe || purpose == v1alpha1.BootPurposeWipe
	if !ours || l == nil || l.SeenOnAt == nil || o.heard(l.Entry) {
		return 0, false
	}
	on := o.since(l.SeenOnCounted, l.SeenOnAt.Time)
	if r := l.Request; r != nil && r.Entry == l.Entry && r.Action == v1alpha1.PowerActionOn {
		on = min(on, o.since(r.AskedCounted, r.AskedAt.Time))
	}
	lost := max(0, o.since(l.EnteredCounted, l.EnteredAt.Time)-o.Counted)
	word := o.Settings.Boot.For(o.Server.Status.Manufacturer, o.Server.Status.Model).FirstWord
	return word + lost - on, true
}

// since is how long ago something was recorded: by counted time where that tells, else by the wall clock.
func (o Observation) since(at metav1.Duration, recorded time.Time) time.Duration {
	if age, ok := o.CountedNow.Since(counted.From(at)); ok {
		return age
	}
	return o.Now.Sub(recorded)
}

// LastPhase is what the agent of an entry said last that it is doing; nil where it said nothing.
func LastPhase(inv *policyv1alpha1.ServerInventory, entry int64) *policyv1alpha1.AgentPhase {
	if inv == nil || inv.Phase == nil || inv.Phase.Entry != entry {
		return nil
	}
	return inv.Phase
}

// dataFound says that the report of this entry shows a disk, or storage that no disk shows, with which the machine may not be offered.
func (o Observation) dataFound() bool { return len(DataOn(o)) > 0 || len(HiddenOn(o)) > 0 }

// DataOn are the disks of the report of this entry with which the machine may not be offered, by what offer.accepts says.
func DataOn(o Observation) []policyv1alpha1.BlockDevice {
	l := o.Server.Status.Lifecycle
	if l == nil || o.Inventory == nil || o.Inventory.Report == nil {
		return nil
	}
	r := o.Inventory.Report
	if r.Entry != l.Entry || !o.believes(r) {
		return nil
	}
	var found []policyv1alpha1.BlockDevice
	for i := range r.Data.Storage {
		d := &r.Data.Storage[i]
		if !d.Remote() && !o.Excused(d) && o.counts(d) && !o.accepts(d) {
			found = append(found, *d)
		}
	}
	return found
}

// counts says that data on a disk keeps a machine from being offered: it is a fixed one, or a removable medium that is to be erased.
func (o Observation) counts(d *policyv1alpha1.BlockDevice) bool {
	erased := o.Settings.Wipe.Removable == bundle.RemovableErase && d.RemovableMedium()
	return !d.Removable || erased && d.Content != policyv1alpha1.ContentBlank
}

// maxFound is how many disks are named.
const maxFound = 16

// DataWords names the disks of DataOn, each with what was found there.
func DataWords(found []policyv1alpha1.BlockDevice) []string {
	var words []string
	for i := range found[:min(len(found), maxFound)] {
		d := &found[i]
		what := cmp.Or(d.ContentFound, "data")
		switch d.Content {
		case "":
			what = "not read"
		case policyv1alpha1.ContentUnreadable:
			what = "unreadable"
		case policyv1alpha1.ContentBlank, policyv1alpha1.ContentData:
		}
		words = append(words, fmt.Sprintf("%s (%s)", cmp.Or(d.Path, d.Name, d.Serial, "a disk"), what))
	}
	return words
}

// Excused says that the policy leaves a disk as it is.
func (o Observation) Excused(d *policyv1alpha1.BlockDevice) bool {
	return slices.ContainsFunc(o.Settings.Wipe.Excused, func(name string) bool {
		return name == d.WWID || name == d.Serial || name == d.Model
	})
}

// accepts says that a machine may be offered with a disk as it was read.
func (o Observation) accepts(d *policyv1alpha1.BlockDevice) bool {
	if o.doubt() != restored.None {
		return o.acceptsInDoubt(d)
	}
	if o.Settings.Accepts(bundle.AcceptWiped) && o.wiped(d) {
		return true
	}
	switch d.Content {
	case policyv1alpha1.ContentBlank:
		return o.Settings.Accepts(bundle.AcceptBlank)
	case "":
		return o.Settings.Accepts(bundle.AcceptUnread)
	case policyv1alpha1.ContentData, policyv1alpha1.ContentUnreadable:
	}
	return o.Settings.Accepts(bundle.AcceptData)
}

// wiped says that the last wipe was verified, covered the disk, and that no claim held the machine since. A wipe of this very
// entry counts too: its agent reports the disks as they were before.
func (o Observation) wiped(d *policyv1alpha1.BlockDevice) bool {
	w := o.Inventory.Wipe
	if w == nil || w.Entry != o.Server.Status.Lifecycle.Entry && !provenClean(o.Inventory) {
		return false
	}
	for i := range w.Disks {
		e := &w.Disks[i]
		counts := w.Entry == o.Server.Status.Lifecycle.Entry || e.State == policyv1alpha1.DiskVerified
		if counts && policyv1alpha1.SameDisk(d.RememberedDisk(), e.RememberedDisk()) {
			return true
		}
	}
	return false
}

// inventoryFacts are the differences between the last two reports.
func (o Observation) inventoryFacts() InventoryFacts {
	f := InventoryFacts{}
	if o.Inventory == nil {
		return f
	}
	for _, d := range o.Inventory.Differences {
		f.Changed = true
		f.Lost = f.Lost || d.Kind == policyv1alpha1.PartRemoved
	}
	return f
}
