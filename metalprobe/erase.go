// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/erasure"
)

// ErrNotCurrent means that the registry no longer wants this wipe: nothing more may be erased.
var ErrNotCurrent = errors.New("the wipe is no longer current")

// DefaultParallel is how many disks are erased at the same time.
const DefaultParallel = 16

// EraseOrder is how a disk is erased, and who is told of it.
type EraseOrder = erasure.Order

// EraseOutcome is what an erase did, also one that failed.
type EraseOutcome = erasure.Outcome

// Disk is one disk of this server.
type Disk interface {
	// Info describes the disk; it does not change.
	Info() policyv1alpha1.BlockDevice
	// Verdict is what JudgeDisk says of the disk: Ours or Refused. A refused disk is never erased, and fails the wipe.
	Verdict() Verdict
	// Lane names what only one disk at a time may keep busy, such as a RAID adapter. Disks with an empty lane share nothing.
	Lane() string
	// Erase makes the data on the disk unreadable, reads back, and says how. It refuses a disk that is in use, or that JudgeDisk does
	// not call ours when it is asked anew. A repeat erases again. When ctx ends it stops at the next chunk, and the disk is not erased.
	Erase(ctx context.Context, order EraseOrder) (EraseOutcome, error)
	// Recheck reads a disk again that a former boot of this wipe proved, and returns an error where it finds anything but zeros.
	Recheck(ctx context.Context) (*policyv1alpha1.EraseVerification, error)
}

// wipe erases all disks, several at a time, and reports before, meanwhile and after. Each disk needs a fresh permission: no answer is
// no permission, so a registry that is away, or that holds the wipe back, pauses it for as long as that lasts. It returns an error only
// where the registry refused, the entry is no longer current, or ctx ended.
func (a *Agent) wipe(ctx context.Context) error {
	w := &wiping{Agent: a, sending: make(chan struct{}, 1), quarters: make(chan int32, 3), report: WipeReport{State: policyv1alpha1.WipeRunning}}
	// The registry knows what a former boot proved until it hears the first report of this one. Without an answer nothing is proved.
	status, err := a.Registry.WipeStatus(ctx, a.UUID)
	if status, err = permitted(ctx, status, err); err != nil {
		return err
	}
	w.proved = status.Proved
	w.look(ctx)
	disks, skipped, err := a.Disks(ctx)
	if err != nil {
		w.report.State, w.report.Message = policyv1alpha1.WipeFailed, shorten(fmt.Sprintf("listing the disks: %v", err))
		return w.tell(ctx)
	}
	for _, disk := range disks {
		if excuse := excused(a.Wipe.Excused, disk.Info()); excuse != "" {
			verdict := disk.Verdict()
			verdict.Reason = strings.TrimSuffix("the policy excuses "+excuse+": "+verdict.Reason, ": ")
			left := Skip(disk.Info(), verdict)
			left.Excused = true
			skipped = append(skipped, left)
			a.Log.Warn("disk left as it is", "server", a.UUID, "disk", disk.Info().Path, "because", verdict.Reason)
			continue
		}
		w.disks = append(w.disks, disk)
		w.report.Disks = append(w.report.Disks, a.describe(disk))
	}
	w.waits, w.doubts = make([]string, len(w.disks)), make([]string, len(w.disks))
	w.report.Skipped = skipped[:min(len(skipped), MaxDisks)]
	w.tellPhase(ctx, 0)
	if err := w.run(ctx); err != nil {
		return err
	}
	w.look(ctx)
	w.report.State = policyv1alpha1.WipeVerified
	switch failed := w.failed(); {
	case failed > 0:
		w.report.State, w.report.Message = policyv1alpha1.WipeFailed, failure(w.report.Disks)
	case len(w.disks) == 0:
		w.report.Message = "this boot sees no disk" // whether there is none is for the registry to judge
	}
	a.Log.Info("wipe ended", "server", a.UUID, "state", w.report.State, "disks", len(w.disks), "failed", w.failed())
	return w.tell(ctx)
}

// run erases the disks that are ours: those of one lane one after the other, the lanes in parallel.
func (w *wiping) run(ctx context.Context) error {
	ctx, revoke := context.WithCancelCause(ctx)
	defer revoke(nil)
	watched, stopWatching := context.WithCancel(ctx)
	var watching, working sync.WaitGroup
	watching.Go(func() { w.watch(watched, revoke) })
	lanes := make(chan []int)
	for range min(cmp.Or(w.Parallel, DefaultParallel), len(w.disks)) {
		working.Go(func() {
			for lane := range lanes {
				for _, i := range lane {
					if err := w.one(ctx, i); err != nil {
						revoke(err)
						return
					}
				}
			}
		})
	}
	for _, lane := range w.lanes() {
		select {
		case lanes <- lane:
		case <-ctx.Done():
		}
	}
	close(lanes)
	working.Wait()
	stopWatching()
	watching.Wait()
	return context.Cause(ctx)
}

// lanes groups the disks that are ours, in their order.
func (w *wiping) lanes() [][]int {
	var lanes [][]int
	known := map[string]int{}
	for i, disk := range w.disks {
		if disk.Verdict().Standing != DiskOurs {
			continue
		}
		lane := disk.Lane()
		if at, shared := known[lane]; shared && lane != "" {
			lanes[at] = append(lanes[at], i)
			continue
		}
		known[lane] = len(lanes)
		lanes = append(lanes, []int{i})
	}
	return lanes
}

// excused says by what the policy excuses a disk; empty where it does not.
func excused(names []string, s policyv1alpha1.BlockDevice) string {
	for _, by := range []struct{ kind, value string }{{"wwid", s.WWID}, {"serial number", s.Serial}, {"model", s.Model}} {
		if by.value != "" && slices.Contains(names, by.value) {
			return by.kind + " " + by.value
		}
	}
	return ""
}

// describe records a disk before anything is done. A refused disk has failed already: nobody asks for a permission to
// erase it.
func (a *Agent) describe(disk Disk) policyv1alpha1.DiskWipe {
	s, verdict := disk.Info(), disk.Verdict()
	d := policyv1alpha1.DiskWipe{Path: s.Path, Name: s.Name, Serial: s.Serial, WWID: s.WWID, SizeBytes: s.SizeBytes,
		Transport: verdict.Transport, State: policyv1alpha1.DiskPending,
		Manufacturer: s.Vendor, Model: s.Model, Firmware: s.Firmware, Slot: s.PCIAddress, MediaType: MediaOf(s, verdict)}
	if verdict.Standing != DiskOurs {
		d.State, d.Message = policyv1alpha1.DiskFailed, shorten("not erased: "+verdict.Reason)
		a.Log.Error("disk refused", "server", a.UUID, "disk", d.Path, "serial", d.Serial, "transport", d.Transport, "because", verdict.Reason)
	}
	b := bounds{trim: true}
	b.texts("disk", maxWord, &d.Path, &d.Name, &d.Serial, &d.WWID, &d.Manufacturer, &d.Model, &d.Firmware, &d.Slot)
	b.text("disk", &d.Transport, maxFlag)
	return d
}

// MediaOf names the kind of medium, as far as the kernel tells.
func MediaOf(s policyv1alpha1.BlockDevice, verdict Verdict) policyv1alpha1.MediaType {
	switch {
	case verdict.OverwriteOnly:
		return policyv1alpha1.MediaVolume
	case isNVMe(s.Name):
		return policyv1alpha1.MediaNVMe
	case verdict.Transport == transportMMC:
		return policyv1alpha1.MediaEMMC
	case strings.HasPrefix(s.Name, "pmem"):
		return policyv1alpha1.MediaNVDIMM
	case s.Rotational && verdict.Transport != transportUSB: // the kernel takes every USB stick for a disk that turns
		return policyv1alpha1.MediaHDD
	}
	return policyv1alpha1.MediaSSD
}

// Skip records a disk that a wipe leaves alone.
func Skip(s policyv1alpha1.BlockDevice, verdict Verdict) policyv1alpha1.SkippedDisk {
	d := policyv1alpha1.SkippedDisk{Path: s.Path, Name: s.Name, Serial: s.Serial, WWID: s.WWID, SizeBytes: s.SizeBytes,
		Transport: verdict.Transport, Reason: verdict.Reason}
	b := bounds{trim: true}
	b.texts("disk", maxWord, &d.Path, &d.Name, &d.Serial, &d.WWID)
	b.text("disk", &d.Transport, maxFlag)
	b.text("disk", &d.Reason, maxText)
	return d
}

// failure names the disks that may still hold data, each with its reason, as far as a message has room.
func failure(disks []policyv1alpha1.DiskWipe) string {
	var words []string
	for _, d := range disks {
		if d.State != policyv1alpha1.DiskVerified {
			name := d.Path
			if d.Serial != "" {
				name += " (serial " + d.Serial + ")"
			}
			words = append(words, name+": "+strings.TrimLeft(strings.TrimPrefix(d.Message, d.Path), ": "))
		}
	}
	return shorten(fmt.Sprintf("%d of %d disks may still hold data: %s", len(words), len(disks), strings.Join(words, "; ")))
}

func shorten(text string) string {
	b := bounds{trim: true}
	b.text("message", &text, maxText)
	return text
}
