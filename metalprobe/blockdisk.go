// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe/erasure"
)

// blockDisk is a real disk, reached through its device file.
type blockDisk struct {
	info    policyv1alpha1.BlockDevice
	verdict Verdict
	// guard returns an error where the disk must not be written, asked anew before each erase.
	guard func() error
	// flags are added when the file is opened for writing. On a block device O_EXCL makes the kernel itself refuse a
	// disk that is mounted or mapped.
	flags int
	// lane is the RAID adapter of a volume.
	lane string
	// prepare is done before the erase: waiting for a sanitize that runs in the drive, stopping what holds the disk.
	prepare []preparation
}

// Disks lists what a wipe has to erase, and what it leaves alone because it is no fixed disk. A fixed disk that is refused,
// in use or not writable is to be erased as well, and its Erase fails: it may hold data.
func (h *Host) Disks(_ context.Context) (disks []Disk, skipped []policyv1alpha1.SkippedDisk, err error) {
	names, err := h.blockDevices()
	var releasing sync.Mutex
	for _, name := range names {
		info, verdict := h.storage(name), h.judge(name)
		if verdict.Standing == DiskNotFixed {
			skipped = append(skipped, Skip(info, verdict))
			continue
		}
		disks = append(disks, h.ours(info, verdict, &releasing))
	}
	for _, m := range h.hiddenMedia() {
		if m.sleeps {
			disks = append(disks, h.ours(m.info, m.verdict, &releasing))
			continue
		}
		disks = append(disks, &blockDisk{info: m.info, verdict: m.verdict, guard: func() error { return errHidden }})
	}
	return disks, skipped, err
}

// mayErase refuses a disk that is not ours to erase or is in use, as the machine says it now.
func (h *Host) mayErase(info policyv1alpha1.BlockDevice) error {
	if !h.sys().Exists("sys/block/" + info.Name) {
		return errors.New("it is gone; check its cabling")
	}
	dir := "sys/block/" + info.Name
	if info.WWID != h.sys().WWID(dir) && info.WWID != "" || info.Serial != h.sys().Serial(dir) && info.Serial != "" {
		return errors.New("another disk has its name now; leave the disks in their bays, and repeat the wipe")
	}
	if use := h.InUse(info.Name); use != "" {
		return fmt.Errorf("%s; the agent must run from memory", use)
	}
	if verdict := h.judge(info.Name); verdict.Standing != DiskOurs || verdict.Sanitizing {
		return errors.New(verdict.Reason)
	}
	return nil
}

// laneOf is the path of the adapter that a volume shares with others; empty for other disks.
func laneOf(place string, verdict Verdict) string {
	if !verdict.OverwriteOnly {
		return ""
	}
	parts := strings.Split(place, "/")
	for i, part := range parts {
		if scsiHost.MatchString(part) {
			return strings.Join(parts[:i], "/")
		}
	}
	return ""
}

// Info implements Disk.
func (d *blockDisk) Info() policyv1alpha1.BlockDevice { return d.info }

// Verdict implements Disk.
func (d *blockDisk) Verdict() Verdict { return d.verdict }

// Lane implements Disk.
func (d *blockDisk) Lane() string { return d.lane }

// Erase implements Disk.
func (d *blockDisk) Erase(ctx context.Context, order EraseOrder) (outcome EraseOutcome, err error) {
	var prepared []policyv1alpha1.EraseStep
	defer func() { outcome.Steps = append(prepared, outcome.Steps...) }()
	for _, prepare := range d.prepare {
		step, err := prepare(ctx, order)
		if err != nil {
			prepared = append(prepared, step)
			return EraseOutcome{}, fmt.Errorf("%s not erased: %w", d.info.Path,
				err)
		}
		if step.Method != "" {
			prepared = append(prepared, step)
		}
	}
	if err := d.guard(); err != nil {
		return EraseOutcome{}, fmt.Errorf("%s not erased: %w", d.info.Path, err)
	}
	disk, err := erasure.Open(d.info.Path, os.O_RDWR|d.flags)
	if errors.Is(err, syscall.EBUSY) {
		err = fmt.Errorf("%w: something holds it that the kernel does not name, such as ZFS; the agent must run "+
			"from memory", err)
	}
	if err != nil {
		return EraseOutcome{}, err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	target := erasure.Target{Medium: disk, Media: MediaOf(d.info, d.verdict), Volume: d.verdict.OverwriteOnly}
	target.Protocol = protocolOf(d.info, d.verdict)
	if target.Protocol != erasure.NoProtocol {
		target.Commands = disk
	}
	if outcome, err = erasure.Erase(ctx, target, order); err != nil {
		err = fmt.Errorf("%s: %w", d.info.Path, err)
		var locked *erasure.LockedError
		if errors.As(err, &locked) {
			err = locked // its message begins with the reason
		}
	}
	return outcome, err
}

// Recheck implements Disk.
func (d *blockDisk) Recheck(ctx context.Context) (verification *policyv1alpha1.EraseVerification, err error) {
	if err := d.guard(); err != nil { // another disk may have its name now
		return nil, fmt.Errorf("%s not read again: %w", d.info.Path, err)
	}
	disk, err := erasure.Open(d.info.Path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	return erasure.Recheck(ctx, disk)
}

// protocolOf tells in what language a drive takes commands. A SATA drive behind a SAS adapter names its vendor ATA.
func protocolOf(s policyv1alpha1.BlockDevice, verdict Verdict) erasure.Protocol {
	switch {
	case verdict.OverwriteOnly, verdict.Transport == transportUSB: // a USB bridge may answer for its drive
		return erasure.NoProtocol
	case isNVMe(s.Name):
		return erasure.NVMe
	case !strings.HasPrefix(s.Name, "sd"):
		return erasure.NoProtocol
	case verdict.Transport == transportSATA, s.Vendor == "ATA":
		return erasure.ATA
	}
	return erasure.SCSI
}
