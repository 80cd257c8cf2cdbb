// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/term"
)

// Input is what a record is made from.
type Input struct {
	// Server is the Server of the machine, as it is when the wipe ends.
	Server *metalv1alpha1.Server
	// Inventory is what is stored of the machine, without the end of the wipe.
	Inventory *policyv1alpha1.ServerInventory
	// Wipe is the wipe that ended.
	Wipe *policyv1alpha1.WipeReport
	// PolicyDigest is the digest of the revision that governs the Server; empty where it is not known.
	PolicyDigest string
	// AgentImage is the image of the boot configuration; empty where it is not known.
	AgentImage string
	// Previous is the machine's record before; nil for the first.
	Previous *policyv1alpha1.RecordReference
	// Voids is the record that the new one takes back; nil for every other record.
	Voids *policyv1alpha1.RecordReference
	// Now is the time.
	Now time.Time
}

// Of makes the record of a wipe that ended.
func Of(in Input) (*policyv1alpha1.SanitizationRecord, error) {
	s, uuid := in.Server, in.Inventory.Spec.SystemUUID
	spec := policyv1alpha1.SanitizationRecordSpec{
		Sequence:   1,
		RecordedAt: metav1.NewTime(in.Now.Truncate(time.Second)),
		Machine: policyv1alpha1.SanitizedMachine{
			SystemUUID: uuid, ServerName: s.Name,
			Manufacturer: s.Status.Manufacturer, Model: s.Status.Model, SerialNumber: s.Status.SerialNumber,
		},
		EndedBy:      endedBy(s),
		Entry:        in.Wipe.Entry,
		PolicyDigest: in.PolicyDigest,
		AgentImage:   cut(in.AgentImage, 1024),
		Skipped:      in.Wipe.Skipped,
		Hidden:       in.Wipe.Hidden,
		HiddenKnown:  in.Wipe.HiddenKnown,
		BMCStorage:   in.Wipe.BMCStorage,
		UnseenDrives: in.Wipe.UnseenDrives,
		ExcusedOnly:  in.Wipe.ExcusedOnly,
		State:        in.Wipe.State,
		StartedAt:    in.Wipe.StartedAt,
		Message:      in.Wipe.Message,
	}
	spec.Voids = in.Voids.DeepCopy()
	if in.Previous != nil {
		spec.Sequence, spec.PreviousHash = in.Previous.Sequence+1, in.Previous.Hash
	}
	if in.Inventory.Custody != nil {
		spec.Holder = in.Inventory.Custody.LastHolder.DeepCopy()
		spec.Attested = unseen(in.Inventory.Custody.Attested, in.Wipe)
	}
	spec.RequestedBy, spec.Reason = asked(s, in.Wipe.Entry)
	if s.Status.Lifecycle != nil {
		spec.PolicyRevision = s.Status.Lifecycle.Revision
	}
	if report := in.Inventory.Report; report != nil {
		system := report.Data.SystemInfo.SystemInformation
		spec.Machine.Manufacturer = cmp.Or(spec.Machine.Manufacturer, system.Manufacturer)
		spec.Machine.Model = cmp.Or(spec.Machine.Model, system.ProductName)
		spec.Machine.SerialNumber = cmp.Or(spec.Machine.SerialNumber, system.SerialNumber)
		if report.Entry == in.Wipe.Entry {
			spec.AgentVersion, spec.Identity = report.AgentVersion, report.Identity.DeepCopy()
		}
	}
	for _, text := range []*string{&spec.Machine.Manufacturer, &spec.Machine.Model, &spec.Machine.SerialNumber} {
		*text = cut(*text, 256)
	}
	for _, disk := range in.Wipe.Disks {
		spec.Media = append(spec.Media, Medium(disk, in.Inventory.Report, in.Wipe.Entry))
	}
	hash, err := Hash(spec)
	if err != nil {
		return nil, err
	}
	spec.Hash = hash
	return &policyv1alpha1.SanitizationRecord{ObjectMeta: metav1.ObjectMeta{
		Name: Name(uuid, spec.Sequence), Labels: labels(uuid, s.Name),
	}, Spec: spec}, nil
}

// Tells says whether two records are of the same end of the same wipe, whenever and wherever in the chain they were made.
func Tells(a, b *policyv1alpha1.SanitizationRecord) bool {
	x, y := a.Spec, b.Spec
	return x.Machine.SystemUUID == y.Machine.SystemUUID && x.Entry == y.Entry && x.State == y.State && x.Message == y.Message &&
		x.StartedAt.Equal(&y.StartedAt) &&
		equality.Semantic.DeepEqual(x.Media, y.Media) && equality.Semantic.DeepEqual(x.Skipped, y.Skipped)
}

// unseen are the attested disks that a wipe did not see. One that it saw is recorded as what it was: erased or not.
func unseen(attested []policyv1alpha1.AttestedDisk, wipe *policyv1alpha1.WipeReport) []policyv1alpha1.AttestedDisk {
	var seen []policyv1alpha1.CustodyDisk
	for i := range wipe.Disks {
		seen = append(seen, wipe.Disks[i].RememberedDisk())
	}
	for _, d := range wipe.Skipped {
		disk := policyv1alpha1.DiskWipe{Path: d.Path, Name: d.Name, Serial: d.Serial, WWID: d.WWID, Transport: d.Transport}
		seen = append(seen, disk.RememberedDisk())
	}
	var left []policyv1alpha1.AttestedDisk
	for _, a := range attested {
		if len(policyv1alpha1.NotErased([]policyv1alpha1.CustodyDisk{a.CustodyDisk}, seen)) > 0 {
			left = append(left, *a.DeepCopy())
		}
	}
	return left
}

func labels(uuid, server string) map[string]string {
	found := map[string]string{}
	for name, value := range map[string]string{policyv1alpha1.RecordMachineLabel: uuid, policyv1alpha1.RecordServerLabel: server} {
		if value != "" && len(validation.IsValidLabelValue(value)) == 0 {
			found[name] = value
		}
	}
	return found
}

// endedBy is who ended the claim that held the server last, as admission noted it; empty where that is of another claim.
func endedBy(s *metalv1alpha1.Server) string {
	uid, user, _ := strings.Cut(s.Annotations[metalv1alpha1.ClaimEndedByAnnotation], " ")
	if uid == "" || uid != s.Annotations[metalv1alpha1.ReleasedClaimAnnotation] {
		return ""
	}
	return cut(user, 253)
}

// asked says who asked for a wipe, and why: who forced the move into its entry, or asked for what led there. Else the rule of the
// policy is the reason.
func asked(s *metalv1alpha1.Server, entry int64) (by, reason string) {
	l := s.Status.Lifecycle
	if l == nil {
		return "", ""
	}
	at := slices.IndexFunc(l.History, func(m metalv1alpha1.LifecycleMove) bool { return m.Entry == entry })
	if at < 0 {
		return "", ""
	}
	move := l.History[at]
	if move.By != "" || move.Reason != "" {
		return move.By, move.Reason
	}
	if by, reason = led(l.History[:at+1], s.Status.Operation); by != "" || reason != "" {
		return by, reason
	}
	return "", fmt.Sprintf("rule %s of the policy, from %s to %s", move.Rule, move.From, move.To)
}

// led says who let the holder go whose data a wipe erases, and why: by operation release or sanitize, or by a forced move that set
// safety rules aside. It goes back over the moves that end in the wipe, as far as the server was offered or held last: what was
// done before was of another release. Every other operation left the data where it was.
func led(moves []metalv1alpha1.LifecycleMove, op *metalv1alpha1.OperationStatus) (by, reason string) {
	releases := op != nil && op.State == metalv1alpha1.OperationSucceeded &&
		(op.Name == metalv1alpha1.OperationRelease || op.Name == metalv1alpha1.OperationSanitize)
	for i := len(moves) - 1; i >= 0; i-- {
		move := &moves[i]
		switch {
		case i+1 < len(moves) && move.Entry+1 != moves[i+1].Entry:
			return "", ""
		case move.Rule == metalv1alpha1.RuleForced && len(move.Overrides) > 0:
			return move.By, move.Reason
		case releases && op.Entry+1 == move.Entry:
			return op.By, cmp.Or(op.Reason, "operation "+op.Name)
		case move.From == metalv1alpha1.StateAvailable || move.From == metalv1alpha1.StateReserved:
			return "", ""
		}
	}
	return "", ""
}

// Medium is what a wipe says of a disk, with what only the report of the machine knows, and the term that its methods reached.
func Medium(disk policyv1alpha1.DiskWipe, report *policyv1alpha1.ProbeReport, entry int64) policyv1alpha1.DiskWipe {
	disk = *disk.DeepCopy()
	if device := deviceOf(disk, report, entry); device != nil {
		disk.Name = cmp.Or(disk.Name, device.Name)
		disk.Serial = cmp.Or(disk.Serial, device.Serial)
		disk.WWID = cmp.Or(disk.WWID, device.WWID)
		disk.SizeBytes = cmp.Or(disk.SizeBytes, device.SizeBytes)
		disk.Transport = cmp.Or(disk.Transport, cut(device.Transport, 128))
		disk.Manufacturer = cmp.Or(disk.Manufacturer, device.Vendor)
		disk.Model = cmp.Or(disk.Model, device.Model)
		disk.Firmware = cmp.Or(disk.Firmware, device.Firmware)
		disk.Slot = cmp.Or(disk.Slot, device.Slot, device.PCIAddress)
		disk.MediaType = cmp.Or(disk.MediaType, mediaType(device))
	}
	disk.Term = term.OfDisk(&disk)
	return disk
}

// deviceOf finds a disk in a report by its wwid or serial number; by its path only in a report of the same boot.
func deviceOf(disk policyv1alpha1.DiskWipe, report *policyv1alpha1.ProbeReport, entry int64) *policyv1alpha1.BlockDevice {
	if report == nil {
		return nil
	}
	for i := range report.Data.Storage {
		d := &report.Data.Storage[i]
		switch {
		case policyv1alpha1.DiskIdentifies(disk.WWID) && policyv1alpha1.DiskIdentifies(d.WWID):
			if policyv1alpha1.OneDisk(disk.RememberedDisk(), d.RememberedDisk()) {
				return d
			}
		case policyv1alpha1.DiskIdentifies(disk.Serial) && policyv1alpha1.DiskIdentifies(d.Serial):
			if disk.Serial == d.Serial {
				return d
			}
		case report.Entry == entry && disk.Path == d.Path:
			return d
		}
	}
	return nil
}

func mediaType(d *policyv1alpha1.BlockDevice) policyv1alpha1.MediaType {
	name := cmp.Or(d.Name, strings.TrimPrefix(d.Path, "/dev/"))
	switch {
	case strings.HasPrefix(name, "nvme"):
		return policyv1alpha1.MediaNVMe
	case strings.HasPrefix(name, "mmcblk"):
		return policyv1alpha1.MediaEMMC
	case strings.HasPrefix(name, "pmem"):
		return policyv1alpha1.MediaNVDIMM
	case d.Rotational:
		return policyv1alpha1.MediaHDD
	}
	return policyv1alpha1.MediaSSD
}

func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}
