// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/metalprobe/registry/hardware"
	"github.com/metalaw/metalaw/policies"
	"github.com/metalaw/metalaw/redfish"
)

// Bounds of what status.faultyParts says.
const (
	maxFaultyParts = 64
	maxFaultName   = 256
	maxFaultDetail = 512
)

// Reported is what is known of the parts of a machine.
type Reported struct {
	// Known is what was found before, and Now the time.
	Known []v1alpha1.FaultyPart
	Now   time.Time
	// Spoke says that the BMC of this machine says something of its health, Critical that this is critical and is not tolerated, and
	// Parts which parts are.
	Spoke, Critical bool
	Parts           []redfish.HealthPart
	// Inventory is what the agent reported; it may be nil. Excused are the disks that the policy leaves as they are.
	Inventory *policyv1alpha1.ServerInventory
	Excused   func(*policyv1alpha1.BlockDevice) bool
}

// reported is what is known of the parts of a server in this reconcile.
func reported(in *Input, s *v1alpha1.Server) Reported {
	reason, spoke := policies.HealthReason(in.System, in.Settings.Health.CriticalStops)
	return Reported{Known: s.Status.FaultyParts, Now: in.Now,
		Spoke: spoke && in.Facts.BMC.Identity == policies.IdentitySame, Critical: reason == v1alpha1.ReasonHealthCritical,
		Parts: in.Reading.Snapshot.Critical, Inventory: in.Inventory, Excused: in.Excused}
}

// FaultyParts are the parts of a machine that are taken to be broken, in an order that stays. What is not known now stands as it was
// found before.
func FaultyParts(r Reported) []v1alpha1.FaultyPart {
	found := slices.Concat(r.health(), r.disks(), r.memory())
	for i := range found {
		p := &found[i]
		p.Name, p.Detail, p.Since = diag.Shortened(p.Name, maxFaultName), diag.Shortened(p.Detail, maxFaultDetail), metav1.NewTime(r.Now)
		if known := find(r.Known, p.Fault, p.Name); known != nil {
			p.Since = known.Since
		}
	}
	slices.SortStableFunc(found, func(a, b v1alpha1.FaultyPart) int {
		return cmp.Or(cmp.Compare(a.Fault, b.Fault), cmp.Compare(a.Name, b.Name))
	})
	found = slices.CompactFunc(found, func(a, b v1alpha1.FaultyPart) bool { return a.Fault == b.Fault && a.Name == b.Name })
	return found[:min(len(found), maxFaultyParts)]
}

func find(all []v1alpha1.FaultyPart, fault v1alpha1.HardwareFault, name string) *v1alpha1.FaultyPart {
	for i := range all {
		if all[i].Fault == fault && all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

// knownOf is what was found before of a kind of fault, where it is to stay.
func (r Reported) knownOf(fault v1alpha1.HardwareFault, stays func(v1alpha1.FaultyPart) bool) (kept []v1alpha1.FaultyPart) {
	for _, p := range r.Known {
		if p.Fault == fault && stays(p) {
			kept = append(kept, p)
		}
	}
	return kept
}

func always(v1alpha1.FaultyPart) bool { return true }

func (r Reported) health() (found []v1alpha1.FaultyPart) {
	if !r.Spoke {
		return r.knownOf(v1alpha1.FaultHealth, always)
	}
	if !r.Critical {
		return nil
	}
	for _, p := range r.Parts {
		if p.Hardware {
			found = append(found, v1alpha1.FaultyPart{Fault: v1alpha1.FaultHealth, Name: p.Name, Detail: "the BMC reports it as critical"})
		}
	}
	if len(found) == 0 {
		found = append(found, v1alpha1.FaultyPart{Fault: v1alpha1.FaultHealth, Detail: "the BMC reports the machine as critical and names no part"})
	}
	return found
}

// disks are those that failed their last erase, and those that the agent could not read since.
func (r Reported) disks() []v1alpha1.FaultyPart {
	if r.Inventory == nil {
		return nil
	}
	return append(r.failedDisks(), r.unreadDisks()...)
}

func (r Reported) failedDisks() (found []v1alpha1.FaultyPart) {
	if r.Inventory.Wipe == nil {
		return nil
	}
	for i := range r.Inventory.Wipe.Disks {
		d := &r.Inventory.Wipe.Disks[i]
		name := diskName(d.Serial, d.WWID, d.Path)
		switch {
		case r.takenOut(d):
		case eraseFailed(d):
			found = append(found, v1alpha1.FaultyPart{Fault: v1alpha1.FaultDisk, Name: name,
				Detail: words(d.Path, d.Slot, d.Model, "failed its erase: "+cmp.Or(d.Message, "no reason given"))})
		case d.State != policyv1alpha1.DiskVerified && d.State != policyv1alpha1.DiskFailed: // it is being tried again
			found = append(found, r.knownOf(v1alpha1.FaultDisk, func(p v1alpha1.FaultyPart) bool { return p.Name == name })...)
		}
	}
	return found
}

func (r Reported) unreadDisks() (found []v1alpha1.FaultyPart) {
	if r.Inventory.Report == nil {
		return nil
	}
	for i := range r.Inventory.Report.Data.Storage {
		d := &r.Inventory.Report.Data.Storage[i]
		name := diskName(d.Serial, d.WWID, d.Path)
		if d.Content != policyv1alpha1.ContentUnreadable || d.Removable || d.Remote() || r.Excused(d) || r.erasedSince(name) {
			continue
		}
		found = append(found, v1alpha1.FaultyPart{Fault: v1alpha1.FaultDisk, Name: name,
			Detail: words(d.Path, d.Slot, d.Model, "cannot be read: "+cmp.Or(d.ContentFound, "no reason given"))})
	}
	return found
}

// erasedSince says that a wipe which is younger than the report erased a disk.
func (r Reported) erasedSince(name string) bool {
	w := r.Inventory.Wipe
	return w != nil && !r.reportedSince(w) && slices.ContainsFunc(w.Disks, func(d policyv1alpha1.DiskWipe) bool {
		return d.State == policyv1alpha1.DiskVerified && diskName(d.Serial, d.WWID, d.Path) == name
	})
}

// eraseFailed says that an erase was begun and the disk is why it failed. A disk that the agent refuses, or that has no method which the
// policy asks for, is not broken.
func eraseFailed(d *policyv1alpha1.DiskWipe) bool {
	failed := func(s policyv1alpha1.EraseStep) bool { return s.Result == policyv1alpha1.EraseFailed }
	return d.State == policyv1alpha1.DiskFailed && (slices.ContainsFunc(d.Steps, failed) ||
		d.Verification != nil && !d.Verification.Passed || len(d.Steps) == 0 && d.FinishedAt != nil)
}

func (r Reported) reportedSince(w *policyv1alpha1.WipeReport) bool {
	return r.Inventory.Report != nil && r.Inventory.Report.ReceivedAt.After(w.UpdatedAt.Time)
}

// takenOut says that a complete report which is younger than the wipe does not have the disk.
func (r Reported) takenOut(d *policyv1alpha1.DiskWipe) bool {
	if !r.reportedSince(r.Inventory.Wipe) || len(r.Inventory.Report.Data.Problems) > 0 {
		return false
	}
	return !slices.ContainsFunc(r.Inventory.Report.Data.Storage, func(s policyv1alpha1.BlockDevice) bool {
		return diskName(s.Serial, s.WWID, s.Path) == diskName(d.Serial, d.WWID, d.Path)
	})
}

// memory are the modules that a former report had and the last one lacks. One that was moved to another slot is not missing. A module
// that was found missing stays so until its slot holds one again: the report after the next has nothing to compare.
func (r Reported) memory() (found []v1alpha1.FaultyPart) {
	if r.Inventory == nil || r.Inventory.Report == nil {
		return nil
	}
	version := r.Inventory.Report.AgentVersion
	slots, complete := hardware.Slots(&r.Inventory.Report.Data)
	added := map[string]int{}
	for _, d := range r.Inventory.Differences {
		if d.Part == hardware.PartDIMM && d.Kind == policyv1alpha1.PartAdded {
			added[d.Detail]++
		}
	}
	for _, d := range r.Inventory.Differences {
		if d.Part != hardware.PartDIMM || d.Kind != policyv1alpha1.PartRemoved {
			continue
		}
		if added[d.Detail] > 0 {
			added[d.Detail]--
			continue
		}
		found = append(found, v1alpha1.FaultyPart{Fault: v1alpha1.FaultMemory, Name: d.Name, AgentVersion: version,
			Detail: strings.TrimSpace(d.Detail + " is missing")})
	}
	return append(found, r.knownOf(v1alpha1.FaultMemory, func(p v1alpha1.FaultyPart) bool {
		return p.AgentVersion == version && !(complete && slices.Contains(slots, p.Name))
	})...)
}

func diskName(serial, wwid, path string) string { return cmp.Or(serial, wwid, path) }

// words joins what is known of a part.
func words(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(word string) bool { return word == "" }), " ")
}
