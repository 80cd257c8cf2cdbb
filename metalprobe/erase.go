// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// ErrNotCurrent means that the registry no longer wants this wipe: nothing more may be erased.
var ErrNotCurrent = errors.New("the wipe is no longer current")

// Disk is one disk of this server.
type Disk interface {
	// Info describes the disk; it does not change.
	Info() Storage
	// Erase makes the data on the disk unreadable and says how. It refuses a disk that is in use, read-only or
	// removable. A repeat erases again. When ctx ends it stops at the next chunk, and the disk is not erased.
	Erase(ctx context.Context) (method string, err error)
	// Verify reads back and returns an error where it finds anything but zeros.
	Verify(ctx context.Context) error
}

// wipe erases all disks, one after the other, and reports before, between and after. Each disk needs a fresh
// permission: no answer is no permission, so a registry that is away pauses the wipe. It returns an error only where
// the registry refused, the entry is no longer current, or ctx ended.
func (a *Agent) wipe(ctx context.Context) error {
	report := WipeReport{State: WipeRunning}
	disks, err := a.Disks(ctx)
	if err != nil {
		report.State, report.Message = WipeFailed, shorten(fmt.Sprintf("listing the disks: %v", err))
		return a.tell(ctx, report)
	}
	for _, disk := range disks {
		report.Disks = append(report.Disks, describe(disk.Info()))
	}
	failed := 0
	for i, disk := range disks {
		report.Disks[i].State = DiskErasing
		if err := a.tell(ctx, report); err != nil {
			return err
		}
		if err := a.permitted(ctx); err != nil {
			return err
		}
		proved, err := a.eraseWatched(ctx, disk, &report.Disks[i], copyOf(report))
		if err != nil {
			return err
		}
		if !proved {
			failed++
		}
	}
	report.State = WipeVerified
	if failed > 0 {
		report.State, report.Message = WipeFailed, fmt.Sprintf("%d of %d disks may still hold data", failed, len(disks))
	}
	a.Log.Info("wipe ended", "server", a.UUID, "state", report.State, "disks", len(disks), "failed", failed)
	return a.tell(ctx, report)
}

// insist repeats a call until the registry answered: yes, or a refusal.
func (a *Agent) insist(ctx context.Context, what string, call func() error) error {
	for {
		err := call()
		if err == nil {
			return nil
		}
		if err = fmt.Errorf("%s: %w", what, err); IsRefused(err) {
			return err
		}
		a.Log.Warn("will try again", "server", a.UUID, "in", a.Interval, "error", err)
		if !wait(ctx, a.Interval) {
			return err
		}
	}
}

func (a *Agent) tell(ctx context.Context, report WipeReport) error {
	return a.insist(ctx, "reporting that the wipe is "+string(report.State), func() error {
		return a.Registry.ReportWipe(ctx, a.UUID, report)
	})
}

// permitted asks the registry whether the entry is still current.
func (a *Agent) permitted(ctx context.Context) error {
	var status WipeStatus
	err := a.insist(ctx, "asking whether to go on", func() (err error) {
		status, err = a.Registry.WipeStatus(ctx, a.UUID)
		return err
	})
	if err != nil {
		return err
	}
	if !status.Current {
		return fmt.Errorf("%w: %s", ErrNotCurrent, status.Reason)
	}
	return nil
}

// eraseWatched erases one disk while it keeps telling that it does, and asking whether the entry is current; told that
// it is not, it stops.
func (a *Agent) eraseWatched(ctx context.Context, disk Disk, record *DiskWipe, report WipeReport) (proved bool, err error) {
	erasing, stop := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for wait(erasing, min(a.Interval, MaxWipeInterval)) {
			status, err := a.Registry.WipeStatus(erasing, a.UUID)
			switch {
			case err == nil && !status.Current:
				stop(fmt.Errorf("%w: %s", ErrNotCurrent, status.Reason))
			case IsRefused(err):
				stop(fmt.Errorf("asking whether to go on: %w", err))
			case err == nil:
				// A report that is lost is repeated at the next turn, or overtaken by the disk's outcome.
				if err := a.Registry.ReportWipe(erasing, a.UUID, report); err != nil && erasing.Err() == nil {
					a.Log.Warn("progress not reported", "server", a.UUID, "error", err)
				}
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
func (a *Agent) erase(ctx context.Context, disk Disk, record *DiskWipe) bool {
	method, err := disk.Erase(ctx)
	record.Method = method
	if err == nil {
		record.State = DiskErased
		err = disk.Verify(ctx)
	}
	if err != nil {
		record.State, record.Message = DiskFailed, shorten(err.Error())
		a.Log.Error("disk not erased", "server", a.UUID, "disk", record.Path, "serial", record.Serial, "error", err)
		return false
	}
	record.State = DiskVerified
	a.Log.Info("disk erased and read back", "server", a.UUID, "disk", record.Path, "serial", record.Serial, "method", method)
	return true
}

// copyOf shares nothing with the report, whose disks change while they are erased.
func copyOf(report WipeReport) WipeReport {
	report.Disks = slices.Clone(report.Disks)
	return report
}

func describe(s Storage) DiskWipe {
	d := DiskWipe{Path: s.Path, Name: s.Name, Serial: s.Serial, WWID: s.WWID, SizeBytes: s.SizeBytes, State: DiskPending}
	b := bounds{trim: true}
	b.words("disk", &d.Path, &d.Name, &d.Serial, &d.WWID)
	return d
}

func shorten(text string) string {
	b := bounds{trim: true}
	b.text("message", &text, MaxText)
	return text
}
