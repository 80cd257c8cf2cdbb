// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// ErrNotCurrent means that the registry no longer wants this wipe: nothing more may be erased.
var ErrNotCurrent = errors.New("the wipe is no longer current")

// Disk is one disk of this server.
type Disk interface {
	// Info describes the disk; it does not change.
	Info() policyv1alpha1.BlockDevice
	// Verdict is what JudgeDisk says of the disk: Ours or Refused. A refused disk is never erased, and fails the wipe.
	Verdict() Verdict
	// Erase makes the data on the disk unreadable and says how. It refuses a disk that is in use, or that JudgeDisk does
	// not call ours when it is asked anew. A repeat erases again. When ctx ends it stops at the next chunk, and the disk is not erased.
	Erase(ctx context.Context) (method string, err error)
	// Verify reads back and returns an error where it finds anything but zeros.
	Verify(ctx context.Context) error
}

// wipe erases all disks, one after the other, and reports before, between and after. Each disk needs a fresh
// permission: no answer is no permission, so a registry that is away, or that holds the wipe back, pauses it for as long
// as that lasts. It returns an error only where the registry refused, the entry is no longer current, or ctx ended.
func (a *Agent) wipe(ctx context.Context) error {
	report := WipeReport{State: policyv1alpha1.WipeRunning}
	disks, skipped, err := a.Disks(ctx)
	if err != nil {
		report.State, report.Message = policyv1alpha1.WipeFailed, shorten(fmt.Sprintf("listing the disks: %v", err))
		return a.tell(ctx, report)
	}
	report.Skipped = skipped[:min(len(skipped), MaxDisks)]
	for _, disk := range disks {
		report.Disks = append(report.Disks, a.describe(disk))
	}
	failed := 0
	for i, disk := range disks {
		if disk.Verdict().Standing != DiskOurs {
			failed++
			continue
		}
		if err := a.begin(ctx, &report, i); err != nil {
			return err
		}
		progress := report
		progress.Disks = slices.Clone(report.Disks) // the report's own disks change while they are erased
		proved, err := a.eraseWatched(ctx, disk, &report.Disks[i], progress)
		if err != nil {
			return err
		}
		if !proved {
			failed++
		}
	}
	report.State = policyv1alpha1.WipeVerified
	switch {
	case failed > 0:
		report.State, report.Message = policyv1alpha1.WipeFailed, failure(report.Disks)
	case len(disks) == 0:
		report.Message = "this boot sees no disk" // whether there is none is for the registry to judge
	}
	a.Log.Info("wipe ended", "server", a.UUID, "state", report.State, "disks", len(disks), "failed", failed)
	return a.tell(ctx, report)
}

// begin announces that a disk is to be erased and waits until that is permitted, however long that takes. Announcing
// comes first, so that nobody cuts the power unawares; asking comes last, so that no permission is old. While it waits it
// says so often enough that nobody takes the wipe for silent.
func (a *Agent) begin(ctx context.Context, report *WipeReport, i int) error {
	for {
		report.Disks[i].State, report.Message = policyv1alpha1.DiskErasing, ""
		if err := a.tell(ctx, *report); err != nil {
			return err
		}
		status, err := a.permitted(ctx)
		if err != nil || !status.Held {
			return err
		}
		report.Disks[i].State = policyv1alpha1.DiskPending
		for status.Held {
			report.Message = shorten(fmt.Sprintf("waits before %s: %s", report.Disks[i].Path, status.Reason))
			a.Log.Warn("waits for the permission to erase", "server", a.UUID, "disk", report.Disks[i].Path, "because", status.Reason)
			if err := a.tell(ctx, *report); err != nil {
				return err
			}
			if !Wait(ctx, a.patience(status)) {
				return ctx.Err()
			}
			if status, err = a.permitted(ctx); err != nil {
				return err
			}
		}
	}
}

// permitted asks the registry whether a disk may be erased now. Held without an error means: ask again. So does no answer.
func (a *Agent) permitted(ctx context.Context) (WipeStatus, error) {
	status, err := a.Registry.WipeStatus(ctx, a.UUID)
	switch {
	case IsRefused(err) || (err != nil && ctx.Err() != nil):
		return WipeStatus{}, fmt.Errorf("asking whether to go on: %w", err)
	case err != nil:
		return WipeStatus{Held: true, Reason: err.Error()}, nil //nolint:nilerr // no answer means: ask again
	case !status.Current && !status.Held:
		return WipeStatus{}, fmt.Errorf("%w: %s", ErrNotCurrent, status.Reason)
	}
	return status, nil
}

// pace is the time between two signs of life.
func (a *Agent) pace() time.Duration { return min(a.Interval, MaxWipeInterval) }

// patience is how long to wait before asking again: as the registry says, and never so long that the wipe seems silent.
func (a *Agent) patience(status WipeStatus) time.Duration {
	if status.RetryAfter <= 0 {
		return a.pace()
	}
	return min(status.RetryAfter, MaxWipeInterval)
}

// tell reports, again and again until the registry answered: yes, or a refusal.
func (a *Agent) tell(ctx context.Context, report WipeReport) error {
	for {
		err := a.Registry.ReportWipe(ctx, a.UUID, report)
		if err == nil {
			return nil
		}
		if err = fmt.Errorf("reporting that the wipe is %s: %w", report.State, err); IsRefused(err) {
			return err
		}
		a.Log.Warn("will try again", "server", a.UUID, "in", a.pace(), "error", err)
		if !Wait(ctx, a.pace()) {
			return err
		}
	}
}

// eraseWatched erases one disk while it keeps telling that it does, and asking whether the entry is current; told that
// it is not, it stops. What is held back, or not answered, does not stop a disk that is being erased: half an erase
// helps nobody.
func (a *Agent) eraseWatched(ctx context.Context, disk Disk, record *policyv1alpha1.DiskWipe, report WipeReport) (proved bool, err error) {
	erasing, stop := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for Wait(erasing, a.pace()) {
			if _, err := a.permitted(erasing); err != nil {
				if erasing.Err() == nil {
					stop(err)
				}
				return
			}
			// A report that is lost is repeated at the next turn, or overtaken by the disk's outcome.
			if err := a.Registry.ReportWipe(erasing, a.UUID, report); err != nil && erasing.Err() == nil {
				a.Log.Warn("progress not reported", "server", a.UUID, "error", err)
			}
		}
	})
	proved = a.erase(erasing, disk, record)
	revoked := context.Cause(erasing)
	stop(nil)
	watching.Wait()
	return proved, revoked
}

// erase erases and verifies one disk, and is true when that is proved.
func (a *Agent) erase(ctx context.Context, disk Disk, record *policyv1alpha1.DiskWipe) bool {
	method, err := disk.Erase(ctx)
	record.Method = method
	if err == nil {
		record.State = policyv1alpha1.DiskErased
		err = disk.Verify(ctx)
	}
	if err != nil {
		record.State, record.Message = policyv1alpha1.DiskFailed, shorten(err.Error())
		a.Log.Error("disk not erased", "server", a.UUID, "disk", record.Path, "serial", record.Serial, "error", err)
		return false
	}
	record.State, record.Message = policyv1alpha1.DiskVerified, disk.Verdict().Reason
	a.Log.Info("disk erased and read back", "server", a.UUID, "disk", record.Path, "serial", record.Serial, "method", method)
	return true
}

// describe records a disk before anything is done. A refused disk has failed already: nobody asks for a permission to
// erase it.
func (a *Agent) describe(disk Disk) policyv1alpha1.DiskWipe {
	s, verdict := disk.Info(), disk.Verdict()
	d := policyv1alpha1.DiskWipe{Path: s.Path, Name: s.Name, Serial: s.Serial, WWID: s.WWID, SizeBytes: s.SizeBytes,
		Transport: verdict.Transport, State: policyv1alpha1.DiskPending}
	if verdict.Standing != DiskOurs {
		d.State, d.Message = policyv1alpha1.DiskFailed, shorten("not erased: "+verdict.Reason)
		a.Log.Error("disk refused", "server", a.UUID, "disk", d.Path, "serial", d.Serial, "transport", d.Transport, "because", verdict.Reason)
	}
	b := bounds{trim: true}
	b.texts("disk", maxWord, &d.Path, &d.Name, &d.Serial, &d.WWID)
	b.text("disk", &d.Transport, maxFlag)
	return d
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
